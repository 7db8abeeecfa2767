/* SPDX-License-Identifier: MIT */
/* cli/page/page_time.c - the timeline of the page: bins of every device, and their layers.
 *
 * A page has few layers of a dimension, the largest; the others are one. Merged bins keep what the
 * one with more bytes has. */
#include <stdlib.h>

#include "base/array.h"
#include "cli/output/xalloc.h"
#include "cli/page/page_columns.h"
#include "cli/page/page_parts.h"
#include "kit/tree.h"
#include "model/run.h"
#include "passes/group.h"
#include "passes/pyramid/pyramid.h"
#include "passes/timeline.h"

static const struct {
    enum tmk_by by;
    const char *name;
} dimensions[] = {{TMK_BY_CATEGORY, "category"},
                  {TMK_BY_MODULE, "module"},
                  {TMK_BY_COMPONENT, "component"},
                  {TMK_BY_STAGE, "stage"}};

/* One device's bins, as they are shown: by bin, the part that stands for it. */
struct shown_bins {
    const struct tmk_timeline_part *parts;
    uint32_t *highest; /* by shown bin: the part with most bytes */
    uint32_t n, merged;
};

static uint32_t highest_of(const struct tmk_timeline_part *parts, uint32_t from, uint32_t n)
{
    uint32_t best = from;
    for (uint32_t i = from; i < from + n; i++)
        if (parts[i].max_bytes > parts[best].max_bytes)
            best = i;
    return best;
}

static struct shown_bins show_bins(const struct tmk_page_parts *p, uint32_t device)
{
    const struct tmk_timeline *t = tmk_pyramid_timeline(p->source->pyramid);
    struct shown_bins b = {.parts = tmk_timeline_parts(t, device),
                           .merged = p->detail->merged_bins,
                           .n = tmk_timeline_n_parts(t) / p->detail->merged_bins};
    b.highest = tmk_xcalloc(b.n, sizeof *b.highest);
    for (uint32_t i = 0; i < b.n; i++)
        b.highest[i] = highest_of(b.parts, i * b.merged, b.merged);
    return b;
}

static uint64_t least_of(const struct shown_bins *b, uint32_t i)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t k = 0; k < b->merged; k++)
        if (b->parts[i * b->merged + k].min_bytes < least)
            least = b->parts[i * b->merged + k].min_bytes;
    return least;
}

/* The most of several parts plus one; 0: none of them knows. */
static uint64_t most_reserved(const struct shown_bins *b, uint32_t i)
{
    uint64_t most = 0;
    for (uint32_t k = 0; k < b->merged; k++) {
        const struct tmk_timeline_part *part = &b->parts[i * b->merged + k];
        if (part->has_reserved && part->max_reserved_bytes + 1 > most)
            most = part->max_reserved_bytes + 1;
    }
    return most;
}

static uint64_t most_used(const struct shown_bins *b, uint32_t i)
{
    uint64_t most = 0;
    for (uint32_t k = 0; k < b->merged; k++) {
        const struct tmk_timeline_part *part = &b->parts[i * b->merged + k];
        if (part->has_used && part->max_used_bytes + 1 > most)
            most = part->max_used_bytes + 1;
    }
    return most;
}

static void put_bins(struct tmk_page_columns *c, const struct shown_bins *b, unsigned device)
{
    tmk_page_column(c, TMK_PAGE_DELTA, "bins.%u.max", device);
    for (uint32_t i = 0; i < b->n; i++)
        tmk_page_put(c, b->parts[b->highest[i]].max_bytes);
    tmk_page_column(c, TMK_PAGE_DELTA, "bins.%u.at", device);
    for (uint32_t i = 0; i < b->n; i++)
        tmk_page_put(c, b->parts[b->highest[i]].max_ns);
    tmk_page_column(c, TMK_PAGE_DELTA, "bins.%u.min", device);
    for (uint32_t i = 0; i < b->n; i++)
        tmk_page_put(c, least_of(b, i));
    tmk_page_column(c, TMK_PAGE_DELTA, "bins.%u.reserved", device);
    for (uint32_t i = 0; i < b->n; i++)
        tmk_page_put(c, most_reserved(b, i));
    tmk_page_column(c, TMK_PAGE_DELTA, "bins.%u.used", device);
    for (uint32_t i = 0; i < b->n; i++)
        tmk_page_put(c, most_used(b, i));
}

/* ---- layers ---- */

struct sized_key {
    uint32_t key;
    uint64_t most; /* bytes in a bin */
    uint64_t sum;
};

static int compare_sized_keys(const void *va, const void *vb)
{
    const struct sized_key *a = va, *b = vb;
    if (a->sum != b->sum)
        return a->sum > b->sum ? -1 : 1;
    return a->key < b->key ? -1 : a->key > b->key;
}

/* The keys with bytes in a shown bin, those with most of them first; the last key of the pyramid
 * (further ones) is never first. Returns their number. */
static uint32_t size_keys(const struct tmk_page_parts *p, unsigned device, enum tmk_by by,
                          const struct shown_bins *b, struct sized_key *ret)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < tmk_pyramid_n_keys(p->source->pyramid, by); k++) {
        const uint64_t *bytes = tmk_pyramid_bytes(p->source->pyramid, device, by, k);
        struct sized_key key = {.key = k};
        for (uint32_t i = 0; bytes && i < b->n; i++) {
            uint64_t now = bytes[b->highest[i]];
            key.most = now > key.most ? now : key.most;
            key.sum += now / b->n;
        }
        if (k == TMK_PYRAMID_MAX_KEYS)
            key.sum = 0;
        if (key.most > 0)
            ret[n++] = key;
    }
    qsort(ret, n, sizeof *ret, compare_sized_keys);
    return n;
}

static void put_layer(struct tmk_page_parts *p, unsigned device, unsigned dimension,
                      const struct shown_bins *b, const struct sized_key *keys, uint32_t n)
{
    const struct tmk_pyramid *y = p->source->pyramid;
    enum tmk_by by = dimensions[dimension].by;
    bool is_others = n > 1 || keys[0].key == TMK_PYRAMID_MAX_KEYS;
    tmk_page_column(p->columns, TMK_PAGE_DELTA, "layers.%llu",
                    (unsigned long long)p->columns->n_columns);
    tmk_tree_object(p->tree, NULL);
    tmk_tree_u64(p->tree, "device", device);
    tmk_tree_text(p->tree, "by", dimensions[dimension].name);
    tmk_tree_text(p->tree, "key", is_others ? NULL : tmk_pyramid_key(y, by, keys[0].key));
    tmk_tree_u64(p->tree, "others", is_others ? n : 0);
    tmk_tree_text(p->tree, "column", p->columns->columns[p->columns->n_columns - 1].name);
    tmk_tree_end(p->tree);
    for (uint32_t i = 0; i < b->n; i++) {
        uint64_t sum = 0;
        for (uint32_t k = 0; k < n; k++)
            sum += tmk_pyramid_bytes(y, device, by, keys[k].key)[b->highest[i]];
        tmk_page_put(p->columns, sum);
    }
}

static void put_layers(struct tmk_page_parts *p, unsigned device, const struct shown_bins *b)
{
    struct sized_key keys[TMK_PYRAMID_MAX_KEYS + 1];
    for (unsigned i = 0; i < TMK_N(dimensions); i++) {
        uint32_t n = size_keys(p, device, dimensions[i].by, b, keys);
        uint32_t n_own = n <= p->detail->n_keys ? n : p->detail->n_keys - 1;
        for (uint32_t k = 0; k < n_own; k++)
            put_layer(p, device, i, b, &keys[k], 1);
        if (n > n_own)
            put_layer(p, device, i, b, &keys[n_own], n - n_own);
    }
}

void tmk_page_put_timeline(struct tmk_page_parts *p)
{
    const struct tmk_timeline *t = tmk_pyramid_timeline(p->source->pyramid);
    char name[24];
    tmk_tree_object(p->tree, "timeline");
    tmk_tree_u64(p->tree, "offset_ns", p->about->p->offset_ns);
    tmk_tree_u64(p->tree, "start_ns", tmk_pyramid_start_ns(p->source->pyramid));
    tmk_tree_u64(p->tree, "end_ns", tmk_pyramid_end_ns(p->source->pyramid));
    tmk_tree_u64(p->tree, "known_ns", tmk_timeline_known_ns(t));
    tmk_tree_u64(p->tree, "bins", tmk_timeline_n_parts(t) / p->detail->merged_bins);
    tmk_tree_list(p->tree, "devices");
    for (uint32_t d = 0; d < tmk_timeline_n_devices(t); d++)
        tmk_tree_text(p->tree, NULL, tmk_device_name(tmk_timeline_device(t, d), name));
    tmk_tree_end(p->tree);
    tmk_tree_list(p->tree, "layers");
    for (uint32_t d = 0; d < tmk_timeline_n_devices(t); d++) {
        struct shown_bins b = show_bins(p, d);
        put_bins(p->columns, &b, d);
        put_layers(p, d, &b);
        free(b.highest);
    }
    tmk_tree_end(p->tree);
    tmk_tree_end(p->tree);
}
