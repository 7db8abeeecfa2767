/* SPDX-License-Identifier: MIT */
/* kit/grow.h - arrays that grow: the caller keeps pointer, count and room; this finds the memory.
 */
#ifndef TMK_KIT_GROW_H
#define TMK_KIT_GROW_H

#include <stddef.h>
#include <stdint.h>

/* `items` with room for at least `n` of them, moved if need be, *room brought up to date. NULL when
 * there is no memory: `items` is then as it was.
 *
 *     struct row *more = tmk_grow(t->rows, t->n + 1, &t->room, sizeof *more);
 *     if (!more)
 *         return TMK_ENOMEM;
 *     t->rows = more; */
void *tmk_grow(void *items, uint64_t n, uint64_t *room, size_t item_bytes);

#endif
