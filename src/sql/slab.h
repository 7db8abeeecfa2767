/* SPDX-License-Identifier: MIT */
/* sql/slab.h - memory for columns: many pieces of some kilobytes, often hundreds of megabytes.
 *
 * Cut from blocks of megabytes that are asked for all at once: page by page, as they are touched,
 * costs twice as much. (Huge pages would cost less still where the machine has them at hand, but
 * several times as much where it has to find them first.) A block whose last piece has gone is kept
 * for the next, one of them; so a table that is streamed through uses the same memory again. */
#ifndef TMK_SQL_SLAB_H
#define TMK_SQL_SLAB_H

#include <stddef.h>
#include <stdint.h>

struct tmk_slab;

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

#endif
