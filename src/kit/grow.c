/* SPDX-License-Identifier: MIT */
/* kit/grow.c - see grow.h. Doubles, so that n appends cost O(n). */
#include "kit/grow.h"

#include <stdlib.h>

enum { FIRST_ROOM = 16 };

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
