/* SPDX-License-Identifier: MIT */
/* sql/slab.h - memory for columns: many pieces of some kilobytes, often hundreds of megabytes.
 *
 * Cut from blocks of megabytes that are asked for all at once: page by page, as they are touched,
 * costs twice as much. (Huge pages would cost less still where the machine has them at hand, but
 * several times as much where it has to find them first.) A block whose last piece has gone is kept
 * for the next, one of them; so a table that is streamed through uses the same memory again. */
#ifndef TMK_SQL_SLAB_H
#define TMK_SQL_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tmk_slab { /* a block */
    struct tmk_slab *older, *newer;
    size_t used, size; /* of the whole block, this header included */
    uint32_t n_pieces;
};

struct tmk_slab_piece { /* stands before each piece */
    struct tmk_slab *slab;
    uint64_t n_bytes; /* with this header */
};

struct tmk_slabs {
    struct tmk_slab *newest, *spare;
    uint64_t n_bytes; /* of all pieces that are out */
};

/* Zero is empty. A piece of at least `n` bytes, aligned for 64-bit numbers; NULL without memory. */
void *tmk_slabs_take(struct tmk_slabs *s, size_t n);
/* Give one back. */
void tmk_slabs_drop(struct tmk_slabs *s, void *piece);
/* Give all back. */
void tmk_slabs_fini(struct tmk_slabs *s);

/* The invariants (base/valid.h):
 *   - blocks in use name each other, older and newer, have pieces, and are not filled beyond their
 *     size; the spare one is none of them;
 *   - a block's pieces lie one behind the other in it and say that they are its own; the pieces
 *     that are out are no more than those;
 *   - `n_bytes` is no more than what is filled. */
bool tmk_slabs_is_valid(const struct tmk_slabs *s);

#endif
