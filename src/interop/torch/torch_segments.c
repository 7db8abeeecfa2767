/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_segments.c - see torch_segments.h. Segments are few beside blocks, so a
 * sorted array will do. A made-up one that adjoins another grows it. */
#include "interop/torch/torch_segments.h"

#include <stdlib.h>
#include <string.h>

#include "kit/grow.h"

static const uint64_t granule = 2 << 20; /* what the driver's memory comes in */

void tmk_torch_segments_fini(struct tmk_torch_segments *t)
{
    free(t->items);
    t->items = NULL;
    t->n = t->room = 0;
}

/* No address is so high that an end would overflow, but a hostile trace may say so. */
static uint64_t end_of(uint64_t address, uint64_t size_bytes)
{
    return size_bytes > UINT64_MAX - address ? UINT64_MAX : address + size_bytes;
}

static uint64_t segment_end(const struct tmk_torch_segment *s)
{
    return end_of(s->address, s->size_bytes);
}

/* The first segment that ends behind the address. */
static uint64_t first_behind(const struct tmk_torch_segments *t, uint64_t address)
{
    uint64_t low = 0, high = t->n;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (segment_end(&t->items[middle]) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct tmk_torch_segment *tmk_torch_segments_find(const struct tmk_torch_segments *t,
                                                  uint64_t address)
{
    uint64_t i = first_behind(t, address);
    return i < t->n && t->items[i].address <= address ? &t->items[i] : NULL;
}

static void insert(struct tmk_torch_segments *t, uint64_t at, const struct tmk_torch_segment *s)
{
    if (TMK_GROW(t->items, t->n + 1, t->room) < 0) {
        t->failed = true;
        return;
    }
    memmove(&t->items[at + 1], &t->items[at], (size_t)(t->n - at) * sizeof *t->items);
    t->items[at] = *s;
    t->n++;
}

static void take_out(struct tmk_torch_segments *t, uint64_t at)
{
    t->n--;
    memmove(&t->items[at], &t->items[at + 1], (size_t)(t->n - at) * sizeof *t->items);
}

/* ---- the driver's ---- */

/* [from, to) of the made-up segment `at` goes; what is left of it stays. */
static void cut(struct tmk_torch_segments *t, uint64_t at, uint64_t from, uint64_t to)
{
    struct tmk_torch_segment whole = t->items[at], gone = whole, behind = whole;
    gone.address = from;
    gone.size_bytes = to - from;
    behind.address = to;
    behind.size_bytes = segment_end(&whole) - to;
    take_out(t, at);
    t->tell(t->arg, &gone, false);
    if (behind.size_bytes > 0)
        insert(t, at, &behind);
    whole.size_bytes = from - whole.address;
    if (whole.size_bytes > 0)
        insert(t, at, &whole);
}

/* What lies where a new segment does was made up, or its end was lost. */
static void make_place(struct tmk_torch_segments *t, const struct tmk_torch_segment *s)
{
    uint64_t end = segment_end(s), i;
    while (!t->failed && (i = first_behind(t, s->address)) < t->n && t->items[i].address < end) {
        struct tmk_torch_segment old = t->items[i];
        if (old.kind == TMK_TORCH_MADE_UP) {
            uint64_t old_end = segment_end(&old);
            cut(t, i, old.address > s->address ? old.address : s->address,
                old_end < end ? old_end : end);
        } else {
            take_out(t, i);
            t->tell(t->arg, &old, false);
        }
    }
}

void tmk_torch_segments_begin(struct tmk_torch_segments *t, const struct tmk_torch_segment *s)
{
    if (t->failed || s->size_bytes == 0)
        return;
    make_place(t, s);
    insert(t, first_behind(t, s->address), s);
    if (!t->failed)
        t->tell(t->arg, s, true);
}

bool tmk_torch_segments_end(struct tmk_torch_segments *t, uint64_t address)
{
    uint64_t i = first_behind(t, address);
    if (t->failed || i >= t->n || t->items[i].address != address ||
        t->items[i].kind == TMK_TORCH_MADE_UP)
        return false;
    struct tmk_torch_segment old = t->items[i];
    take_out(t, i);
    t->tell(t->arg, &old, false);
    return old.n_blocks > 0;
}

/* ---- blocks ---- */

/* Memory from `address`, where there is none, up to `end` or the next segment. */
static void make_up(struct tmk_torch_segments *t, uint64_t address, uint64_t end)
{
    uint64_t i = first_behind(t, address);
    uint64_t before = i > 0 ? segment_end(&t->items[i - 1]) : 0;
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
        insert(t, i, &s);
    t->n_made_up++;
    if (!t->failed)
        t->tell(t->arg, &s, true);
}

void tmk_torch_segments_hold(struct tmk_torch_segments *t, uint64_t address, uint64_t size_bytes,
                             uint64_t stream)
{
    uint64_t end = end_of(address, size_bytes > 0 ? size_bytes : 1), at = address;
    while (!t->failed && at < end) {
        struct tmk_torch_segment *s = tmk_torch_segments_find(t, at);
        if (!s) {
            make_up(t, at, end);
            continue;
        }
        if (!s->has_stream) {
            s->stream = stream;
            s->has_stream = true;
        }
        at = segment_end(s);
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
