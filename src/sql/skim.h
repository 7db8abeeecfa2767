/* SPDX-License-Identifier: MIT */
/* sql/skim.h - decodes the sections of an events chunk that python.torch_trace needs as a whole,
 * and sums the bytes of one device from them.
 *
 * Blocks are looked up by their number in the chunk's address dictionary: an array, no hash. */
#ifndef TMK_SQL_SKIM_H
#define TMK_SQL_SKIM_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/events.h"
#include "trace/kinds.h"

struct tmk_skim_numbers {
    uint32_t *values;
    uint64_t n, room;
};

struct tmk_skim {
    uint64_t n_events; /* events with a readable head: all, unless the chunk is damaged */
    uint8_t *kinds;    /* enum tmk_kind */
    uint64_t *times;   /* trace time; only when wanted */
    struct tmk_skim_numbers data[TMK_KIND_OTHER + 1]; /* ALLOC: pairs of address and shape */
    uint64_t *held; /* by address: size of the block alive there, if on the device */
    uint64_t kind_room, time_room, held_room;
};

/* Decode the chunk that the cursor has begun; the cursor stays where it is. Blocks are decoded
 * only with `want_blocks`. Returns 0 or TMK_ENOMEM. Zero is a skim that has not begun. */
int tmk_skim_chunk(struct tmk_skim *k, const struct tmk_cursor *c, bool want_times,
                   bool want_blocks, uint16_t device);
void tmk_skim_fini(struct tmk_skim *k);

/* The blocks of a skimmed chunk, visited one after the other. */
struct tmk_skim_blocks {
    uint64_t allocated_bytes, max_bytes; /* set before the first */
    const struct tmk_cursor *c;
    uint64_t *held;
    const uint32_t *alloc, *alloc_end, *free, *free_end;
    uint16_t device;
};

static inline struct tmk_skim_blocks tmk_skim_blocks_of(const struct tmk_skim *k,
                                                        const struct tmk_cursor *c, uint16_t device)
{
    const struct tmk_skim_numbers *alloc = &k->data[TMK_KIND_ALLOC],
                                  *free = &k->data[TMK_KIND_FREE];
    return (struct tmk_skim_blocks){.c = c,
                                    .held = k->held,
                                    .alloc = alloc->values,
                                    .alloc_end = alloc->values + alloc->n,
                                    .free = free->values,
                                    .free_end = free->values + free->n,
                                    .device = device};
}

/* Remove the block at an address, if there is one. */
static inline void tmk_skim_take(struct tmk_skim_blocks *b, uint32_t slot)
{
    uint64_t old = b->held[slot];
    b->held[slot] = 0;
    b->allocated_bytes -= old < b->allocated_bytes ? old : b->allocated_bytes;
}

/* Apply the next FREE event. Returns false when there is none or its bytes make no sense. */
static inline bool tmk_skim_free(struct tmk_skim_blocks *b)
{
    if (b->free == b->free_end || *b->free >= b->c->n_addresses)
        return false;
    tmk_skim_take(b, *b->free++);
    return true;
}

/* Apply the next ALLOC event, likewise. */
static inline bool tmk_skim_alloc(struct tmk_skim_blocks *b)
{
    if (b->alloc_end - b->alloc < 2 || b->alloc[0] >= b->c->n_addresses ||
        b->alloc[1] >= b->c->n_shapes)
        return false;
    uint32_t slot = b->alloc[0];
    uint64_t size = b->c->shapes[b->alloc[1]].size_bytes;
    b->alloc += 2;
    tmk_skim_take(b, slot);
    if (b->c->addresses[slot].device != b->device)
        return true;
    b->held[slot] = size;
    b->allocated_bytes += size;
    if (b->allocated_bytes > b->max_bytes)
        b->max_bytes = b->allocated_bytes;
    return true;
}

#endif
