/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_segments.c - see torch_segments.h. Segments are few compared with blocks,
 * so a sorted array is enough. A made-up segment that adjoins another one extends it. */
#include "interop/torch/torch_segments.h"

#include <stdlib.h>
#include <string.h>

#include "kit/grow.h"

static const uint64_t granule = 2 << 20; /* the unit of the driver's memory */

void tmk_torch_segments_fini(struct tmk_torch_segments *t)
{
    free(t->items);
    t->items = NULL;
    t->n = t->room = 0;
}

/* No real address is so high that its end overflows, but a hostile trace may say so. */
static uint64_t saturated_end(uint64_t address, uint64_t size_bytes)
{
    return size_bytes > UINT64_MAX - address ? UINT64_MAX : address + size_bytes;
}

static uint64_t end_of_segment(const struct tmk_torch_segment *s)
{
    return saturated_end(s->address, s->size_bytes);
}

/* The index of the first segment that ends after the address. */
static uint64_t first_segment_behind(const struct tmk_torch_segments *t, uint64_t address)
{
    uint64_t low = 0, high = t->n;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (end_of_segment(&t->items[middle]) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct tmk_torch_segment *tmk_torch_segments_find(const struct tmk_torch_segments *t,
                                                  uint64_t address)
{
    uint64_t i = first_segment_behind(t, address);
    return i < t->n && t->items[i].address <= address ? &t->items[i] : NULL;
}

static void insert_segment(struct tmk_torch_segments *t, uint64_t at,
                           const struct tmk_torch_segment *s)
{
    if (TMK_GROW(t->items, t->n + 1, t->room) < 0) {
        t->failed = true;
        return;
    }
    memmove(&t->items[at + 1], &t->items[at], (size_t)(t->n - at) * sizeof *t->items);
    t->items[at] = *s;
    t->n++;
}

static void take_segment_out(struct tmk_torch_segments *t, uint64_t at)
{
    t->n--;
    memmove(&t->items[at], &t->items[at + 1], (size_t)(t->n - at) * sizeof *t->items);
}

/* ---- the driver's ---- */

/* Remove [from, to) of the made-up segment `at`; the rest of it stays. */
static void cut_segment(struct tmk_torch_segments *t, uint64_t at, uint64_t from, uint64_t to)
{
    struct tmk_torch_segment whole = t->items[at], gone = whole, behind = whole;
    gone.address = from;
    gone.size_bytes = to - from;
    behind.address = to;
    behind.size_bytes = end_of_segment(&whole) - to;
    take_segment_out(t, at);
    t->tell(t->arg, &gone, false);
    if (behind.size_bytes > 0)
        insert_segment(t, at, &behind);
    whole.size_bytes = from - whole.address;
    if (whole.size_bytes > 0)
        insert_segment(t, at, &whole);
}

/* Segments that overlap a new one were made up, or their end was lost: they go. */
static void make_segment_place(struct tmk_torch_segments *t, const struct tmk_torch_segment *s)
{
    uint64_t end = end_of_segment(s), i;
    while (!t->failed && (i = first_segment_behind(t, s->address)) < t->n &&
           t->items[i].address < end) {
        struct tmk_torch_segment old = t->items[i];
        if (old.kind == TMK_TORCH_MADE_UP) {
            uint64_t old_end = end_of_segment(&old);
            cut_segment(t, i, old.address > s->address ? old.address : s->address,
                        old_end < end ? old_end : end);
        } else {
            take_segment_out(t, i);
            t->tell(t->arg, &old, false);
        }
    }
}

void tmk_torch_segments_begin(struct tmk_torch_segments *t, const struct tmk_torch_segment *s)
{
    if (t->failed || s->size_bytes == 0)
        return;
    make_segment_place(t, s);
    insert_segment(t, first_segment_behind(t, s->address), s);
    if (!t->failed)
        t->tell(t->arg, s, true);
}

bool tmk_torch_segments_end(struct tmk_torch_segments *t, uint64_t address)
{
    uint64_t i = first_segment_behind(t, address);
    if (t->failed || i >= t->n || t->items[i].address != address ||
        t->items[i].kind == TMK_TORCH_MADE_UP)
        return false;
    struct tmk_torch_segment old = t->items[i];
    take_segment_out(t, i);
    t->tell(t->arg, &old, false);
    return old.n_blocks > 0;
}

/* ---- blocks ---- */

/* Make up memory from `address`, where there is none, up to `end` or the next segment. */
static void make_up_segment(struct tmk_torch_segments *t, uint64_t address, uint64_t end)
{
    uint64_t i = first_segment_behind(t, address);
    uint64_t before = i > 0 ? end_of_segment(&t->items[i - 1]) : 0;
    uint64_t behind = i < t->n ? t->items[i].address : UINT64_MAX;
    uint64_t from = address / granule * granule;
    uint64_t to = end > UINT64_MAX - granule ? UINT64_MAX : (end + granule - 1) / granule * granule;
    from = from > before ? from : before;
    to = to < behind ? to : behind;
    struct tmk_torch_segment s = {
        .address = from, .size_bytes = to - from, .kind = TMK_TORCH_MADE_UP, .has_stream = true};
    if (i > 0 && before == from && t->items[i - 1].kind == TMK_TORCH_MADE_UP)
        t->items[i - 1].size_bytes += s.size_bytes;
    else
        insert_segment(t, i, &s);
    t->n_made_up++;
    if (!t->failed)
        t->tell(t->arg, &s, true);
}

void tmk_torch_segments_hold(struct tmk_torch_segments *t, uint64_t address, uint64_t size_bytes,
                             uint64_t stream)
{
    uint64_t end = saturated_end(address, size_bytes > 0 ? size_bytes : 1), at = address;
    while (!t->failed && at < end) {
        struct tmk_torch_segment *s = tmk_torch_segments_find(t, at);
        if (!s) {
            make_up_segment(t, at, end);
            continue;
        }
        if (!s->has_stream) {
            s->stream = stream;
            s->has_stream = true;
        }
        at = end_of_segment(s);
    }
    struct tmk_torch_segment *first = t->failed ? NULL : tmk_torch_segments_find(t, address);
    if (first)
        first->n_blocks++;
}

void tmk_torch_segments_release(struct tmk_torch_segments *t, uint64_t address)
{
    struct tmk_torch_segment *s = tmk_torch_segments_find(t, address);
    if (s && s->n_blocks > 0)
        s->n_blocks--;
}
