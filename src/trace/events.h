/* SPDX-License-Identifier: MIT */
/* trace/events.h - walks the events of one chunk.
 *
 * begin() checks the payload's sections and decodes the two dictionaries; next() then costs a few
 * nanoseconds an event. An address is given with its number in the chunk's dictionary (`slot`), so
 * a consumer can keep one thing per slot instead of hashing addresses. Nothing before this chunk is
 * needed. */
#ifndef TMK_TRACE_EVENTS_H
#define TMK_TRACE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/error.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/state.h"

/* kinds.h lists the fields of each kind. Other fields of an event mean nothing. */
struct tmk_event {
    uint64_t time_ns;
    uint8_t kind; /* enum tmk_kind; 0 for a kind this reader does not know */
    uint8_t range_kind;
    uint8_t category;
    uint8_t segment_kind;
    bool is_of_driver; /* OOM: the driver ran out of memory, not the framework's allocator */
    uint16_t device;
    uint16_t stream;
    uint32_t thread;
    uint32_t slot; /* ALLOC, FREE, TAG: number of the address in the chunk's dictionary */
    uint32_t stack;
    uint32_t name; /* string id */
    int64_t step;
    uint64_t address;
    uint64_t requested_bytes; /* ALLOC: before rounding up; 0: not known */
    uint64_t size_bytes;      /* OOM: requested; DROP: events lost */
    uint64_t capacity_bytes;
    uint64_t free_bytes; /* OOM: free on the device then; UINT64_MAX: not known */
    const char *text;    /* MARK: info, not zero-terminated; good while the payload is */
    uint32_t text_bytes;
    struct tmk_sample_body sample;
};

struct tmk_address {
    uint64_t address;
    uint64_t live; /* 0: no block there when the chunk starts, else its size + 1 */
    uint16_t device;
};

struct tmk_cursor {
    const struct tmk_chunk_header *chunk;
    struct tmk_address *addresses;
    uint32_t n_addresses;
    struct tmk_shape *shapes;
    uint32_t n_shapes;
    struct tmk_view context;   /* section 2: for tmk_context_restore() */
    struct tmk_view reserved;  /* section 7: for tmk_reserved_restore() */
    struct tmk_view totals;    /* section 32: for tmk_totals_read() */
    struct tmk_view open_rows; /* section 33: for tmk_open_rows_restore() */

    uint64_t now_ns;
    uint32_t n_left;
    uint32_t thread, run_left;
    struct tmk_view threads, heads, data[TMK_KIND_OTHER + 1];
    uint32_t address_room, shape_room; /* of the arrays, kept between chunks */
};

/* Start on a chunk's checked payload. The cursor may be used again for the next chunk; zero it
 * before the first. Returns 0, or TMK_EDAMAGED when the sections do not fit together. */
int tmk_cursor_begin(struct tmk_cursor *c, const struct tmk_chunk_header *chunk,
                     struct tmk_view payload, struct tmk_error *err);
void tmk_cursor_fini(struct tmk_cursor *c);

/* Read the next event of kind OTHER alone, for a caller that goes through the sections itself. Only
 * the fields of its type are set in *ret. Returns false when the bytes make no sense. */
bool tmk_cursor_read_other(struct tmk_cursor *c, struct tmk_event *ret);

/* Returns 1 and the next event, 0 at the end, TMK_EDAMAGED when the bytes make no sense. */
int tmk_cursor_next(struct tmk_cursor *c, struct tmk_event *ret);

#endif
