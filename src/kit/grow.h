/* SPDX-License-Identifier: MIT */
/* kit/grow.h - arrays that grow: the caller keeps pointer, count and room; this finds the memory.
 *
 *     struct row *rows; uint64_t n, room;
 *
 *     if (TMK_GROW(t->rows, t->n + 1, t->room) < 0)
 *         return TMK_ENOMEM;
 *     t->rows[t->n++] = row;
 *
 * Room is doubled, so n appends cost O(n). free() frees the array. */
#ifndef TMK_KIT_GROW_H
#define TMK_KIT_GROW_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/index.h"

/* Makes room for at least `n` items in the array that the pointer `items` points to, which moves if
 * need be, and updates `room`, a uint64_t. Returns 0, or TMK_ENOMEM with both as they were. Even
 * for n = 0 the array is there afterwards. Each argument is evaluated once. */
#define TMK_GROW(items, n, room)                                                                   \
    __extension__({                                                                                \
        __typeof__(items) *const grow_items_ = &(items);                                           \
        void *const grow_moved_ =                                                                  \
            tmk_grow(*grow_items_, (n), &(room), sizeof(__typeof__(**grow_items_)));               \
        if (grow_moved_)                                                                           \
            *grow_items_ = grow_moved_;                                                            \
        grow_moved_ ? 0 : TMK_ENOMEM;                                                              \
    })

/* Parts of the functions below. */
void *tmk_grow_now(void *items, uint64_t n, uint64_t *room, size_t item_bytes);
int tmk_grow_index_now(struct tmk_index *x);

/* The function behind the macro, for items of a size that is only known at run time. Returns
 * `items` with room for `n` of them, or NULL with `items` as they were. */
static inline void *tmk_grow(void *items, uint64_t n, uint64_t *room, size_t item_bytes)
{
    return items && n <= *room ? items : tmk_grow_now(items, n, room, item_bytes);
}

/* Makes room for one more number in an index. The slots are allocated here: free(x->slots) frees
 * them. Returns 0, or TMK_ENOMEM with the index as it was. */
static inline int tmk_grow_index(struct tmk_index *x)
{
    return tmk_index_has_room(x) ? 0 : tmk_grow_index_now(x);
}

#endif
