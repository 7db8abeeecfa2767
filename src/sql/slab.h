/* SPDX-License-Identifier: MIT */
/* sql/slab.h - memory for columns: many pieces of some kilobytes, often hundreds of megabytes.
 *
 * Pieces are cut from blocks of megabytes that are populated all at once: touching memory page by
 * page costs twice as much. (Huge pages would cost still less where the machine has them ready,
 * but several times as much where it has to find them first.) One block without pieces is kept
 * for the next use, so a table that is streamed through uses the same memory again. */
#ifndef TMK_SQL_SLAB_H
#define TMK_SQL_SLAB_H

#include <stddef.h>
#include <stdint.h>

struct tmk_slab;

struct tmk_slabs {
    struct tmk_slab *newest, *spare;
    uint64_t n_bytes; /* of all pieces in use */
};

/* Take a piece of at least `n` bytes, aligned for 64-bit numbers; NULL without memory. Zero is an
 * empty set of slabs. */
void *tmk_slabs_take(struct tmk_slabs *s, size_t n);
/* Give a piece back. */
void tmk_slabs_drop(struct tmk_slabs *s, void *piece);
/* Free all. */
void tmk_slabs_fini(struct tmk_slabs *s);

#endif
