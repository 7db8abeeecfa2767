/* SPDX-License-Identifier: MIT */
/* model/driver_space_valid.c - the invariants of driver_space.h. */
#include "model/driver_space.h"

#include "base/valid.h"

static uint64_t end_of_piece(const struct tmk_space_piece *piece)
{
    return piece->address + piece->size_bytes;
}

static bool is_sorted(const struct tmk_space_list *list)
{
    TMK_HOLDS(list->n <= list->room);
    for (uint64_t i = 1; i < list->n; i++)
        TMK_HOLDS(list->pieces[i - 1].address <= list->pieces[i].address);
    return true;
}

static bool is_range_apart(const struct tmk_space_list *list)
{
    for (uint64_t i = 1; i < list->n; i++)
        TMK_HOLDS(end_of_piece(&list->pieces[i - 1]) <= list->pieces[i].address);
    return true;
}

bool tmk_driver_space_is_valid(const struct tmk_driver_space *s)
{
    if (!is_sorted(&s->ranges) || !is_sorted(&s->segments) || !is_range_apart(&s->ranges))
        return false;
    uint64_t r = 0; /* the last range that begins at or before the segment */
    for (uint64_t i = 0; i < s->segments.n; i++) {
        const struct tmk_space_piece *segment = &s->segments.pieces[i];
        while (r + 1 < s->ranges.n && s->ranges.pieces[r + 1].address <= segment->address)
            r++;
        TMK_HOLDS(r < s->ranges.n && s->ranges.pieces[r].address <= segment->address &&
                  segment->address < end_of_piece(&s->ranges.pieces[r]));
    }
    return true;
}

bool tmk_driver_space_is_apart(const struct tmk_driver_space *s)
{
    return is_range_apart(&s->segments);
}
