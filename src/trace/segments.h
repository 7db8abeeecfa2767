/* SPDX-License-Identifier: MIT */
/* trace/segments.h - the memory that a process has from the driver at one moment: cudaMalloc'ed
 * memory, VMM handles and their mappings, pools, arrays, pinned host memory. It is part of a state
 * (state.h).
 *
 * Kind and address identify a segment; a VMM handle, a pool or an array has its handle in place of
 * the address. Segments are few and change seldom beside blocks, so they have plain records. A pool
 * that grows or shrinks is a segment that ends and another that begins. */
#ifndef TMK_TRACE_SEGMENTS_H
#define TMK_TRACE_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"
#include "base/region.h"

/* Fixed numbers of the format. X(name, value, text, it takes memory of its device) */
#define TMK_SEGMENT_KINDS(X)                                                                       \
    X(TMK_SEGMENT_DEVICE, 1, "device", true)          /* cuMemAlloc, cuMemAllocPitch */            \
    X(TMK_SEGMENT_ARRAY, 2, "array", true)            /* cuArrayCreate */                          \
    X(TMK_SEGMENT_PHYSICAL, 3, "physical", true)      /* cuMemCreate */                            \
    X(TMK_SEGMENT_MAPPING, 4, "mapping", false)       /* cuMemMap, of a physical one */            \
    X(TMK_SEGMENT_POOL, 5, "pool", true)              /* what cuMemAllocAsync takes from */        \
    X(TMK_SEGMENT_ASYNC, 6, "async", false)           /* of a pool, where it is not a block */     \
    X(TMK_SEGMENT_MANAGED, 7, "managed", false)       /* where its pages are is not known */       \
    X(TMK_SEGMENT_PINNED, 8, "pinned", false)         /* host memory of the driver's */            \
    X(TMK_SEGMENT_REGISTERED, 9, "registered", false) /* host memory of the program's */           \
    X(TMK_SEGMENT_IPC, 10, "ipc", false)              /* another process's memory, opened here */

enum tmk_segment_kind {
#define X(name, value, text, is_on_device) name = (value),
    TMK_SEGMENT_KINDS(X)
#undef X
        TMK_N_SEGMENT_KINDS,
};

/* The text of a kind; "?" for one that this reader does not know. */
const char *tmk_segment_kind_text(unsigned kind);
bool tmk_segment_is_on_device(unsigned kind);
bool tmk_segment_is_of_host(unsigned kind);

struct tmk_driver_segment {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t alloc_ns;
    uint64_t serial; /* n-th of the trace, from 1 */
    int64_t step;    /* TMK_NO_STEP before the first */
    uint32_t stack;
    uint32_t thread;
    uint32_t context; /* as of blocks; 0: none */
    uint16_t device;
    uint8_t kind;

    /* Only the recorder's own table uses these (record/driver/driver_table.h). */
    uint32_t said_in; /* a block: the recording that knows it */
    bool is_block;    /* an async allocation that is recorded as a block */
    uint32_t n_refs;  /* of a handle: owners; of what is opened by IPC: how often more than once */
    uint32_t n_mappings; /* of a handle */
    uint64_t owner;      /* the context that it goes with; of a mapping its handle; 0: none */
    uint64_t stream;     /* of a block: the handle of the stream that it was asked for on */
};

struct tmk_segments {
    struct tmk_driver_segment *items; /* 0..n-1, in no order */
    uint32_t n, max;
    struct tmk_index index; /* by kind and address; the number is the item's + 1 */
    uint64_t n_begun;       /* of all time */
    uint64_t n_lost;        /* beyond max */
    struct tmk_region regions[2];
};

/* Returns 0 or TMK_ENOMEM. fini takes a zeroed or half-made one. */
int tmk_segments_init(struct tmk_segments *s, uint32_t max);
void tmk_segments_fini(struct tmk_segments *s);

/* Find a segment; NULL when there is none. It is good until the next begin or end; the caller may
 * change it except for kind and address. */
struct tmk_driver_segment *tmk_segments_find(const struct tmk_segments *s, unsigned kind,
                                             uint64_t address);
/* Add a copy of `item`; a segment of the same kind and address is replaced. */
void tmk_segments_begin(struct tmk_segments *s, const struct tmk_driver_segment *item);
/* Remove a segment. Returns true when there was one, and copies it to *ret_item (may be NULL). */
bool tmk_segments_end(struct tmk_segments *s, unsigned kind, uint64_t address,
                      struct tmk_driver_segment *ret_item);
void tmk_segments_forget(struct tmk_segments *s);

/* The invariants (base/valid.h):
 *   - there are no more items than `max`;
 *   - the index is valid and has as many numbers as there are items;
 *   - a search for an item's kind and address finds that item, so no two have the same. */
bool tmk_segments_is_valid(const struct tmk_segments *s);
uint64_t tmk_segments_check_cost(const struct tmk_segments *s); /* in items */

#endif
