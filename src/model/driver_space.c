/* SPDX-License-Identifier: MIT */
/* model/driver_space.c - see driver_space.h.
 *
 * Two lists by address, of ranges and of segments, walked from end to end: segments are hundreds,
 * and one is asked of the driver once in thousands of allocations. */
#include "model/driver_space.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit/grow.h"

static const uint64_t range_unit = 32ull << 20;
static const uint64_t top = 0x7f0000000000ull; /* where the kernel begins, going down */
static const uint64_t bottom = 1ull << 40;

void tmk_driver_space_fini(struct tmk_driver_space *s)
{
    free(s->ranges.pieces);
    free(s->segments.pieces);
    *s = (struct tmk_driver_space){0};
}

/* ---- lists ---- */

/* How many pieces lie below `address`. */
static uint64_t count_below(const struct tmk_space_list *list, uint64_t address)
{
    uint64_t low = 0, high = list->n;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (list->pieces[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int insert(struct tmk_space_list *list, uint64_t address, uint64_t bytes)
{
    struct tmk_space_piece *more = tmk_grow(list->pieces, list->n + 1, &list->room, sizeof *more);
    if (!more)
        return TMK_ENOMEM;
    list->pieces = more;
    uint64_t at = count_below(list, address);
    memmove(&more[at + 1], &more[at], (list->n - at) * sizeof *more);
    more[at] = (struct tmk_space_piece){address, bytes};
    list->n++;
    return 0;
}

static void remove_at(struct tmk_space_list *list, uint64_t at)
{
    list->n--;
    memmove(&list->pieces[at], &list->pieces[at + 1], (list->n - at) * sizeof list->pieces[0]);
}

static uint64_t end_of(const struct tmk_space_piece *piece)
{
    return piece->address + piece->size_bytes;
}

/* ---- placing ---- */

/* The lowest room for `bytes` that ranges have left; 0: none. */
static uint64_t find_hole(const struct tmk_driver_space *s, uint64_t bytes)
{
    uint64_t i = 0;
    for (uint64_t r = 0; r < s->ranges.n; r++) {
        const struct tmk_space_piece *range = &s->ranges.pieces[r];
        uint64_t from = range->address;
        for (; i < s->segments.n && s->segments.pieces[i].address < end_of(range); i++) {
            if (s->segments.pieces[i].address >= from + bytes)
                return from;
            from = end_of(&s->segments.pieces[i]);
        }
        if (from + bytes <= end_of(range))
            return from;
    }
    return 0;
}

/* The top of the highest gap between ranges that is large enough for a new one. */
static uint64_t find_gap(const struct tmk_driver_space *s, uint64_t bytes)
{
    uint64_t end = top;
    for (uint64_t r = s->ranges.n; r > 0; r--) {
        uint64_t below = end_of(&s->ranges.pieces[r - 1]);
        if (end > below && end - below >= bytes + range_unit)
            break;
        end = s->ranges.pieces[r - 1].address;
    }
    return end - bottom >= bytes ? (end - bytes) / range_unit * range_unit : 0;
}

uint64_t tmk_driver_space_alloc(struct tmk_driver_space *s, uint64_t bytes)
{
    uint64_t address = bytes < top - bottom ? find_hole(s, bytes) : 0;
    if (!address && bytes < top - bottom) {
        uint64_t size = (bytes + range_unit - 1) / range_unit * range_unit;
        address = find_gap(s, size);
        if (!address || insert(&s->ranges, address, size) < 0)
            return 0;
    }
    if (!address || insert(&s->segments, address, bytes) < 0)
        return 0;
    return address;
}

/* Is the address in one of the ranges? */
static bool find_range(const struct tmk_driver_space *s, uint64_t address, uint64_t *ret_at)
{
    uint64_t n = count_below(&s->ranges, address + 1);
    if (n == 0 || end_of(&s->ranges.pieces[n - 1]) <= address)
        return false;
    *ret_at = n - 1;
    return true;
}

int tmk_driver_space_put(struct tmk_driver_space *s, uint64_t address, uint64_t bytes)
{
    uint64_t at, from = address / range_unit * range_unit;
    uint64_t until = (address + bytes + range_unit - 1) / range_unit * range_unit;
    int rc = 0;
    for (; from < until && rc == 0; from += range_unit) /* one by one: some may be there */
        if (!find_range(s, from, &at))
            rc = insert(&s->ranges, from, range_unit);
    return rc < 0 ? rc : insert(&s->segments, address, bytes);
}

void tmk_driver_space_free(struct tmk_driver_space *s, uint64_t address)
{
    uint64_t range, at = count_below(&s->segments, address);
    if (at == s->segments.n || s->segments.pieces[at].address != address)
        return;
    remove_at(&s->segments, at);
    if (!find_range(s, address, &range))
        return;
    at = count_below(&s->segments, s->ranges.pieces[range].address);
    if (at == s->segments.n || s->segments.pieces[at].address >= end_of(&s->ranges.pieces[range]))
        remove_at(&s->ranges, range);
}
