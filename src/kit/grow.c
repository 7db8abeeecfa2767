/* SPDX-License-Identifier: MIT */
/* kit/grow.c - see grow.h. */
#include "kit/grow.h"

#include <stdlib.h>

enum { FIRST_ROOM = 16, FIRST_SLOTS = 64 };

void *tmk_grow_now(void *items, uint64_t n, uint64_t *room, size_t item_bytes)
{
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

int tmk_grow_index_now(struct tmk_index *x)
{
    uint32_t n_old = tmk_index_n_slots(x), n_slots = n_old ? 2 * n_old : FIRST_SLOTS;
    uint64_t *slots = n_slots ? calloc(n_slots, sizeof *slots) : NULL;
    if (!slots)
        return TMK_ENOMEM;
    struct tmk_index bigger = tmk_index_of(slots, n_slots);
    for (uint32_t i = 0; i < n_old; i++)
        if (x->slots[i])
            tmk_index_add(&bigger, x->slots[i] >> 32, (uint32_t)x->slots[i]);
    free(x->slots);
    *x = bigger;
    return 0;
}
