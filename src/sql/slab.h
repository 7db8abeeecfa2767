/* SPDX-License-Identifier: MIT */
/* sql/slab.h - memory for columns: many pieces of some kilobytes, often hundreds of megabytes.
 *
 * Cut from large blocks that ask for huge pages: a page fault for 2 MiB instead of for 4 KiB saves
 * a tenth of a query over millions of rows. A block goes back when its last piece has gone. */
#ifndef TMK_SQL_SLAB_H
#define TMK_SQL_SLAB_H

#include <stddef.h>
#include <stdint.h>

struct tmk_slab;

struct tmk_slabs {
    struct tmk_slab *newest;
    uint64_t n_bytes; /* of all pieces that are out */
};

/* Zero is empty. A piece of at least `n` bytes, aligned for 64-bit numbers; NULL without memory. */
void *tmk_slabs_take(struct tmk_slabs *s, size_t n);
/* Give one back. */
void tmk_slabs_drop(struct tmk_slabs *s, void *piece);
/* Give all back. */
void tmk_slabs_fini(struct tmk_slabs *s);

#endif
