/* SPDX-License-Identifier: MIT */
/* kit/grow.c - see grow.h. */
#include "kit/grow.h"

#include <stdlib.h>

enum { FIRST_ROOM = 16, FIRST_SLOTS = 64 };

void *tmk_grow(void *items, uint64_t n, uint64_t *room, size_t item_bytes)
{
    if (items && n <= *room)
        return items;
    uint64_t bigger = *room < FIRST_ROOM ? FIRST_ROOM : 2 * *room;
    if (bigger < n)
        bigger = n;
    if (bigger > SIZE_MAX / item_bytes)
        return NULL;
    void *moved = realloc(items, (size_t)bigger * item_bytes);
    if (moved)
        *room = bigger;
    return moved;
}

int tmk_grow_index(struct tmk_index *x)
{
    if (tmk_index_has_room(x))
        return 0;
    struct tmk_index bigger = {.n_slots = x->n_slots ? 2 * x->n_slots : FIRST_SLOTS};
    bigger.slots = bigger.n_slots ? calloc(bigger.n_slots, sizeof *bigger.slots) : NULL;
    if (!bigger.slots)
        return TMK_ENOMEM;
    for (uint32_t i = 0; i < x->n_slots; i++)
        if (x->slots[i])
            tmk_index_add(&bigger, x->slots[i] >> 32, (uint32_t)x->slots[i]);
    free(x->slots);
    *x = bigger;
    return 0;
}
