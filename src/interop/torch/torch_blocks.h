/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_blocks.h - the live blocks of one device while a snapshot is written.
 *
 * A block's entry in the replay's state has its number here (`row`, from 1). After a gap in the
 * trace, blocks are found again by their serial numbers. */
#ifndef TMK_INTEROP_TORCH_TORCH_BLOCKS_H
#define TMK_INTEROP_TORCH_TORCH_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/state.h"

struct tmk_torch_block {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t requested_bytes; /* equal to its size where that is all that is known */
    uint64_t stream;          /* handle; set by the caller of add */
    uint64_t serial;
    uint64_t place; /* of its category in the file; 0: the file does not have its allocation */
    uint32_t stack;
    uint32_t next_free; /* number of the next free entry, while this one is free */
    bool is_used;
    bool is_held;  /* freed, but its memory is not free yet */
    bool is_found; /* for a caller that visits all of them */
};

struct tmk_torch_blocks {
    struct tmk_torch_block *items;
    uint64_t n, room;
    uint32_t first_free; /* number, 0: none */
};

/* Zero is an empty table. */
void tmk_torch_blocks_fini(struct tmk_torch_blocks *t);

/* Make an entry for the block and note its number in `b`; NULL without memory. Good until the
 * next add. */
struct tmk_torch_block *tmk_torch_blocks_add(struct tmk_torch_blocks *t, const struct tmk_state *s,
                                             struct tmk_block *b);
/* The same for a block without an entry in the state. */
struct tmk_torch_block *tmk_torch_blocks_put(struct tmk_torch_blocks *t,
                                             const struct tmk_torch_block *block);
/* Find the block; NULL: it is not here. */
struct tmk_torch_block *tmk_torch_blocks_find(const struct tmk_torch_blocks *t,
                                              const struct tmk_block *b);
void tmk_torch_blocks_remove(struct tmk_torch_blocks *t, struct tmk_torch_block *block);

/* Copies of the blocks in use, by address; malloc'ed. NULL without memory. */
struct tmk_torch_block *tmk_torch_blocks_sorted(const struct tmk_torch_blocks *t, uint64_t *ret_n);

/* After a gap, note in each live block of the device which entry it has, by its serial number;
 * false without memory. Blocks that were not found are not marked as found. */
bool tmk_torch_blocks_match(struct tmk_torch_blocks *t, struct tmk_state *s, uint16_t device);

#endif
