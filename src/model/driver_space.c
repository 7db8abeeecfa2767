/* SPDX-License-Identifier: MIT */
/* model/driver_space.c - see driver_space.h.
 *
 * Ranges and segments are two lists ordered by address, walked from end to end. That is enough:
 * there are hundreds of segments, and the driver is asked for one once in thousands of
 * allocations. */
#include "model/driver_space.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/valid.h"
#include "kit/grow.h"

#define ASSERT_VALID(s)                                                                            \
    TMK_ASSERT_VALID(tmk_driver_space_is_valid(s), (s)->ranges.n + (s)->segments.n)

static const uint64_t range_unit = 32ull << 20;
static const uint64_t granule = 2ull << 20;
static const uint64_t default_top =
    0x7f0000000000ull; /* the kernel places mappings downwards from there */
static const uint64_t bottom = 1ull << 40, limit = 1ull << 47;
static const uint64_t max_segment = 1ull << 45;

enum { max_steps = 64, max_hints = 4096 };

void tmk_driver_space_fini(struct tmk_driver_space *s)
{
    free(s->ranges.pieces);
    free(s->segments.pieces);
    *s = (struct tmk_driver_space){0};
}

/* ---- lists ---- */

/* Count the pieces below `address`. */
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

static int insert_piece(struct tmk_space_list *list, uint64_t address, uint64_t bytes,
                        bool is_others)
{
    if (TMK_GROW(list->pieces, list->n + 1, list->room) < 0)
        return TMK_ENOMEM;
    uint64_t at = count_below(list, address);
    memmove(&list->pieces[at + 1], &list->pieces[at], (list->n - at) * sizeof *list->pieces);
    list->pieces[at] = (struct tmk_space_piece){address, bytes, is_others};
    list->n++;
    return 0;
}

static void remove_space_piece(struct tmk_space_list *list, uint64_t at)
{
    list->n--;
    memmove(&list->pieces[at], &list->pieces[at + 1], (list->n - at) * sizeof list->pieces[0]);
}

static uint64_t piece_end_of(const struct tmk_space_piece *piece)
{
    return piece->address + piece->size_bytes;
}

/* ---- placing ---- */

/* Find the lowest room for `bytes` in the ranges; 0: none. */
static uint64_t find_space_hole(const struct tmk_driver_space *s, uint64_t bytes)
{
    uint64_t i = 0;
    for (uint64_t r = 0; r < s->ranges.n; r++) {
        const struct tmk_space_piece *range = &s->ranges.pieces[r];
        uint64_t from = range->address;
        for (; i < s->segments.n && s->segments.pieces[i].address < piece_end_of(range); i++) {
            if (s->segments.pieces[i].address >= from + bytes)
                return from;
            from = piece_end_of(&s->segments.pieces[i]);
        }
        if (from + bytes <= piece_end_of(range))
            return from;
    }
    return 0;
}

struct space_gap {
    uint64_t start, end;
};

/* Find the highest gap between ranges that is large enough for a new one. */
static struct space_gap find_gap(const struct tmk_driver_space *s, uint64_t bytes)
{
    uint64_t end = s->top ? s->top : default_top;
    for (uint64_t r = count_below(&s->ranges, end); r > 0; r--) {
        uint64_t below = piece_end_of(&s->ranges.pieces[r - 1]);
        if (end > below && end - below >= bytes + range_unit)
            return (struct space_gap){below, end};
        if (s->ranges.pieces[r - 1].address < end)
            end = s->ranges.pieces[r - 1].address;
    }
    return (struct space_gap){bottom, end};
}

static uint64_t range_bytes(uint64_t bytes)
{
    return (bytes + range_unit - 1) / range_unit * range_unit;
}

/* The address of a new range; 0: there is no room. */
static uint64_t place_range(const struct space_gap *gap, uint64_t bytes)
{
    bool fits = gap->end > gap->start && gap->end - gap->start >= bytes + range_unit;
    return fits ? (gap->end - bytes) / range_unit * range_unit : 0;
}

uint64_t tmk_driver_space_alloc(struct tmk_driver_space *s, uint64_t bytes)
{
    if (bytes >= max_segment)
        return 0;
    assert(bytes > 0 && bytes % granule == 0);
    uint64_t address = find_space_hole(s, bytes);
    if (!address) {
        struct space_gap gap = find_gap(s, range_bytes(bytes));
        address = place_range(&gap, range_bytes(bytes));
        if (!address || insert_piece(&s->ranges, address, range_bytes(bytes), false) < 0)
            return 0;
    }
    if (insert_piece(&s->segments, address, bytes, false) < 0)
        return 0;
    ASSERT_VALID(s);
    return address;
}

/* Find the piece that contains the address; false: none does. */
static bool find_space_piece(const struct tmk_space_list *list, uint64_t address, uint64_t *ret_at)
{
    uint64_t n = list->pieces ? count_below(list, address + 1) : 0;
    if (n == 0 || piece_end_of(&list->pieces[n - 1]) <= address)
        return false;
    *ret_at = n - 1;
    return true;
}

/* Whether a piece overlaps [address, address + bytes). */
static bool overlaps_piece(const struct tmk_space_list *list, uint64_t address, uint64_t bytes)
{
    uint64_t n = list->pieces ? count_below(list, address + bytes) : 0;
    return n > 0 && piece_end_of(&list->pieces[n - 1]) > address;
}

int tmk_driver_space_put(struct tmk_driver_space *s, uint64_t address, uint64_t bytes)
{
    uint64_t at;
    int rc = 0;
    if (!find_space_piece(&s->ranges, address, &at)) {
        bool is_new =
            address % range_unit == 0 && !overlaps_piece(&s->ranges, address, range_bytes(bytes));
        rc = insert_piece(&s->ranges, address, is_new ? range_bytes(bytes) : bytes, !is_new);
    }
    if (rc == 0)
        rc = insert_piece(&s->segments, address, bytes, false);
    ASSERT_VALID(s);
    return rc;
}

void tmk_driver_space_free(struct tmk_driver_space *s, uint64_t address)
{
    uint64_t range, at = s->segments.pieces ? count_below(&s->segments, address) : s->segments.n;
    if (at == s->segments.n || s->segments.pieces[at].address != address)
        return;
    remove_space_piece(&s->segments, at);
    if (!find_space_piece(&s->ranges, address, &range) || s->ranges.pieces[range].is_others)
        return;
    const struct tmk_space_piece *r = &s->ranges.pieces[range];
    if (!overlaps_piece(&s->segments, r->address, r->size_bytes))
        remove_space_piece(&s->ranges, range);
    ASSERT_VALID(s);
}

/* ---- others ---- */

void tmk_space_hints_fini(struct tmk_space_hints *hints)
{
    free(hints->items);
    *hints = (struct tmk_space_hints){0};
}

int tmk_driver_space_heed(struct tmk_driver_space *s, const struct tmk_space_hint *hint)
{
    uint64_t range;
    bool is_inside = find_space_piece(&s->ranges, hint->address, &range);
    int rc = 0;
    if (hint->is_room ? overlaps_piece(&s->ranges, hint->address, hint->size_bytes)
                      : overlaps_piece(&s->segments, hint->address, hint->size_bytes))
        return 0;
    if (!is_inside && overlaps_piece(&s->ranges, hint->address, hint->size_bytes))
        return 0;
    if (!is_inside)
        rc = insert_piece(&s->ranges, hint->address, hint->size_bytes, true);
    if (rc == 0 && !hint->is_room)
        rc = insert_piece(&s->segments, hint->address, hint->size_bytes, true);
    ASSERT_VALID(s);
    return rc;
}

static int add_hint(struct tmk_space_hints *hints, const struct tmk_space_hint *hint)
{
    if (TMK_GROW(hints->items, hints->n + 1, hints->room) < 0)
        return TMK_ENOMEM;
    hints->items[hints->n++] = *hint;
    return 0;
}

/* Learn room that others left: it is found piece by piece, where recorded segments lie. */
static int learn_room(struct tmk_driver_space *s, struct tmk_space_hints *hints,
                      const struct tmk_space_event *ev)
{
    uint64_t end = ev->address + ev->size_bytes;
    struct tmk_space_hint hint = {ev->address, ev->size_bytes, ev->at, true};
    for (uint64_t i = 0; i < hints->n; i++) {
        struct tmk_space_hint *h = &hints->items[i];
        if (h->is_room && h->address + h->size_bytes == ev->address) {
            h->size_bytes += ev->size_bytes;
            return tmk_driver_space_heed(s, &hint);
        }
        if (h->is_room && h->address == end) {
            h->address = ev->address;
            h->size_bytes += ev->size_bytes;
            return tmk_driver_space_heed(s, &hint);
        }
    }
    int rc = add_hint(hints, &hint);
    return rc < 0 ? rc : tmk_driver_space_heed(s, &hint);
}

static int learn_taken(struct tmk_driver_space *s, struct tmk_space_hints *hints, uint64_t start,
                       uint64_t end, uint64_t at)
{
    struct tmk_space_hint hint = {start, end - start, at, false};
    int rc = add_hint(hints, &hint);
    return rc < 0 ? rc : tmk_driver_space_heed(s, &hint);
}

static uint64_t hole_end(const struct tmk_driver_space *s, uint64_t address)
{
    uint64_t range, next = count_below(&s->segments, address);
    uint64_t end = find_space_piece(&s->ranges, address, &range)
                       ? piece_end_of(&s->ranges.pieces[range])
                       : address;
    if (next < s->segments.n && s->segments.pieces[next].address < end)
        end = s->segments.pieces[next].address;
    return end;
}

/* Take one step towards an expectation that matches the recording. 1: it matches; 0: try again; or
 * an error. */
static int learn_step(struct tmk_driver_space *s, struct tmk_space_hints *hints,
                      const struct tmk_space_event *ev)
{
    uint64_t size = range_bytes(ev->size_bytes), hole = find_space_hole(s, ev->size_bytes);
    struct space_gap gap = find_gap(s, size);
    uint64_t expected = hole ? hole : place_range(&gap, size);
    if (expected == ev->address)
        return 1;
    if (hole) {
        uint64_t end = hole_end(s, hole);
        bool is_in = ev->address > hole && ev->address < end;
        return learn_taken(s, hints, hole, is_in ? ev->address : end, ev->at);
    }
    bool is_range = ev->address % range_unit == 0 && ev->address < expected &&
                    !overlaps_piece(&s->ranges, ev->address, size);
    if (is_range) {
        uint64_t start = ev->address + size > gap.start ? ev->address + size : gap.start;
        return learn_taken(s, hints, start, gap.end, ev->at);
    }
    int rc = learn_room(s, hints, ev);
    return rc < 0 ? rc : 1;
}

/* Others' memory was where the segment now is, so it must be gone. */
static void forget_taken(struct tmk_driver_space *s, uint64_t address, uint64_t bytes)
{
    for (uint64_t i = s->segments.n; i > 0; i--) {
        const struct tmk_space_piece *p = &s->segments.pieces[i - 1];
        if (p->is_others && p->address < address + bytes && piece_end_of(p) > address)
            remove_space_piece(&s->segments, i - 1);
    }
}

static int learn_segment(struct tmk_driver_space *s, struct tmk_space_hints *hints,
                         const struct tmk_space_event *ev)
{
    int rc = 0;
    forget_taken(s, ev->address, ev->size_bytes);
    for (unsigned i = 0; i < max_steps && rc == 0; i++)
        rc = learn_step(s, hints, ev);
    if (rc < 0)
        return rc;
    return tmk_driver_space_put(s, ev->address, ev->size_bytes);
}

/* Find the top: new ranges lie below the end of the first segment that looks like the start of a
 * range. */
static uint64_t find_top(const struct tmk_space_event *events, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (events[i].size_bytes && events[i].address % range_unit == 0)
            return events[i].address + range_bytes(events[i].size_bytes);
    return 0;
}

static bool is_sane(const struct tmk_space_event *ev)
{
    return ev->address % granule == 0 && ev->size_bytes % granule == 0 && ev->address >= bottom &&
           ev->address < limit && ev->size_bytes < max_segment;
}

int tmk_driver_space_learn(const struct tmk_space_event *events, uint64_t n,
                           struct tmk_space_hints *ret_hints)
{
    struct tmk_driver_space s = {.top = find_top(events, n)};
    int rc = 0;
    ret_hints->top = s.top;
    for (uint64_t i = 0; i < n && rc == 0 && ret_hints->n < max_hints; i++) {
        if (!is_sane(&events[i]))
            continue;
        if (events[i].size_bytes)
            rc = learn_segment(&s, ret_hints, &events[i]);
        else
            tmk_driver_space_free(&s, events[i].address);
    }
    tmk_driver_space_fini(&s);
    return rc;
}
