/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_blocks.h - the blocks of one device that are alive while a snapshot is
 * written.
 *
 * A block's entry in the replay's state knows its number here (`row`, from 1). After a gap in the
 * trace, blocks are found again by their serial numbers. */
#ifndef TMK_INTEROP_TORCH_TORCH_BLOCKS_H
#define TMK_INTEROP_TORCH_TORCH_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/state.h"

struct tmk_torch_block {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t requested_bytes; /* its size, where that is all that is known */
    uint64_t stream;          /* handle; set by whoever adds it */
    uint64_t serial;
    uint64_t place; /* of its category in the file; 0: its allocation is not in it */
    uint32_t stack;
    uint32_t next_free; /* number of the next free one, while it is free itself */
    bool is_used;
    bool is_held;  /* freed, but its memory is not free yet */
    bool is_found; /* for whoever goes through all */
};

struct tmk_torch_blocks {
    struct tmk_torch_block *items;
    uint64_t n, room;
    uint32_t first_free; /* number, 0: none */
};

/* Zero is an empty one. */
void tmk_torch_blocks_fini(struct tmk_torch_blocks *t);

/* Makes a place for the block and notes it in `b`; NULL without memory. Good until the next add. */
struct tmk_torch_block *tmk_torch_blocks_add(struct tmk_torch_blocks *t, const struct tmk_state *s,
                                             struct tmk_block *b);
/* The same for one of which no entry is left. */
struct tmk_torch_block *tmk_torch_blocks_put(struct tmk_torch_blocks *t,
                                             const struct tmk_torch_block *block);
/* NULL: it is not here. */
struct tmk_torch_block *tmk_torch_blocks_find(const struct tmk_torch_blocks *t,
                                              const struct tmk_block *b);
void tmk_torch_blocks_remove(struct tmk_torch_blocks *t, struct tmk_torch_block *block);

/* Copies of those in use, by address; malloc'ed. NULL without memory. */
struct tmk_torch_block *tmk_torch_blocks_sorted(const struct tmk_torch_blocks *t, uint64_t *ret_n);

/* After a gap: note in each live block of the device which one it is, by its serial number; false
 * without memory. Those that were not found are not marked as found. */
bool tmk_torch_blocks_match(struct tmk_torch_blocks *t, struct tmk_state *s, uint16_t device);

#endif
