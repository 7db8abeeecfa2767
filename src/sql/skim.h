/* SPDX-License-Identifier: MIT */
/* sql/skim.h - an events chunk boiled down to its ranges and steps, with the bytes allocated there.
 *
 * What python.torch_trace needs, as quickly as it can be had: sections are decoded whole, then one
 * loop adds up the blocks of one device and notes the sums where a range opens or closes. Blocks
 * are looked up by their number in the chunk's address dictionary: an array, no hash. */
#ifndef TMK_SQL_SKIM_H
#define TMK_SQL_SKIM_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/events.h"

struct tmk_skim_numbers {
    uint32_t *values;
    uint64_t n, room;
};

/* One mark for each event that opens or closes a range or begins a step. */
struct tmk_skim_mark {
    uint64_t allocated_bytes, max_bytes; /* of the device */
    uint64_t time_ns;                    /* when times are wanted */
    uint32_t event;                      /* its number in the chunk */
    uint32_t value;                      /* OPEN: name * 4 + range kind; CLOSE: range kind */
    uint8_t kind;                        /* enum tmk_kind */
};

struct tmk_skim {
    struct tmk_skim_mark *marks;
    uint64_t n_marks, mark_room;
    uint64_t n_events; /* read; fewer than the chunk has when it is damaged */

    /* inside: the sections */
    uint8_t *kinds;
    uint64_t *times;
    uint64_t kind_room, time_room;
    uint64_t *held; /* by address: size of the block alive there, if on the device */
    uint64_t held_room;
    struct tmk_skim_numbers data[TMK_KIND_OTHER + 1]; /* ALLOC: pairs of address and shape */
};

struct tmk_skim_wish {
    bool times, bytes;
    uint16_t device;
    uint64_t allocated_bytes, max_bytes; /* of the device when the chunk begins */
};

/* Boil down the chunk that the cursor has begun; the cursor stays where it is. 0 or TMK_ENOMEM.
 * Zero is a skim that has not begun. */
int tmk_skim_chunk(struct tmk_skim *k, const struct tmk_cursor *c,
                   const struct tmk_skim_wish *wish);
void tmk_skim_fini(struct tmk_skim *k);

#endif
