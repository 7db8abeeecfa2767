/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_changes.c - see torch_changes.h. Changes are few between two blocks. */
#include "interop/torch/torch_changes.h"

#include <stdlib.h>
#include <string.h>

#include "kit/grow.h"

void tmk_torch_changes_fini(struct tmk_torch_changes *c)
{
    free(c->items);
    *c = (struct tmk_torch_changes){0};
}

static void append(struct tmk_torch_changes *c, const struct tmk_torch_change *change)
{
    if (TMK_GROW(c->items, c->n + 1, c->room) < 0) {
        c->failed = true;
        return;
    }
    c->items[c->n++] = *change;
}

static uint64_t end_of(const struct tmk_torch_change *a)
{
    return a->segment.address + a->segment.size_bytes;
}

static bool is_mapped(const struct tmk_torch_change *a)
{
    return a->segment.kind != TMK_TORCH_ALLOCATED;
}

static bool undoes(const struct tmk_torch_change *a, const struct tmk_torch_change *b)
{
    return a->begins != b->begins && a->ns == b->ns && is_mapped(a) && is_mapped(b) &&
           a->segment.address < end_of(b) && b->segment.address < end_of(a);
}

/* [from, to) of it; of no size, if that is nothing. */
static struct tmk_torch_change part_of(const struct tmk_torch_change *a, uint64_t from, uint64_t to)
{
    struct tmk_torch_change part = *a;
    part.segment.address = from;
    part.segment.size_bytes = to > from ? to - from : 0;
    return part;
}

void tmk_torch_changes_add(struct tmk_torch_changes *c, const struct tmk_torch_change *change)
{
    uint64_t i = 0;
    while (i < c->n && !undoes(&c->items[i], change))
        i++;
    if (i == c->n) {
        append(c, change);
        return;
    }
    struct tmk_torch_change old = c->items[i];
    uint64_t start = change->segment.address, end = end_of(change);
    uint64_t old_start = old.segment.address, old_end = end_of(&old);
    uint64_t from = start > old_start ? start : old_start, to = end < old_end ? end : old_end;
    struct tmk_torch_change parts[] = {part_of(&old, old_start, from), part_of(&old, to, old_end),
                                       part_of(change, start, from), part_of(change, to, end)};
    c->n--;
    memmove(&c->items[i], &c->items[i + 1], (size_t)(c->n - i) * sizeof c->items[0]);
    for (unsigned k = 0; k < sizeof parts / sizeof parts[0]; k++)
        if (parts[k].segment.size_bytes > 0)
            tmk_torch_changes_add(c, &parts[k]);
}

static bool goes_on(const struct tmk_torch_change *a, const struct tmk_torch_change *b)
{
    return a->begins == b->begins && a->segment.kind == TMK_TORCH_MAPPED &&
           b->segment.kind == TMK_TORCH_MAPPED && a->segment.stream == b->segment.stream &&
           end_of(a) == b->segment.address;
}

void tmk_torch_changes_settle(struct tmk_torch_changes *c, const struct tmk_torch_segments *t)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < c->n; i++) {
        struct tmk_torch_change change = c->items[i];
        const struct tmk_torch_segment *now = tmk_torch_segments_find(t, change.segment.address);
        if (change.begins && now && now->has_stream)
            change.segment.stream = now->stream;
        if (n > 0 && goes_on(&c->items[n - 1], &change))
            c->items[n - 1].segment.size_bytes += change.segment.size_bytes;
        else
            c->items[n++] = change;
    }
    c->n = n;
}
