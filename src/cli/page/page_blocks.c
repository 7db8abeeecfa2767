/* SPDX-License-Identifier: MIT */
/* cli/page/page_blocks.c - blocks on the page: those drawn one by one over time, the sums of those
 * alive at the peak, and those in their segments at the moment of worst fragmentation. */
#include <stdlib.h>

#include "base/array.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/page/page_columns.h"
#include "cli/page/page_parts.h"
#include "cli/page/page_stacks.h"
#include "kit/tree.h"
#include "model/run.h"
#include "passes/frag/fragmentation.h"
#include "passes/group.h"
#include "passes/peak.h"
#include "passes/pyramid/picked_blocks.h"
#include "passes/pyramid/pyramid.h"
#include "passes/timeline.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/state.h"

static const enum tmk_by dimensions[] = {TMK_BY_CATEGORY, TMK_BY_MODULE, TMK_BY_COMPONENT,
                                         TMK_BY_STAGE};
static const char *const names[] = {"category", "module", "component", "stage"};

static const char *name_of_tensor(const struct tmk_page_parts *p, uint32_t name)
{
    return name ? tmk_reader_string(p->about->p->reader, name) : NULL;
}

/* ---- over time ---- */

static int compare_sizes(const void *va, const void *vb)
{
    const struct tmk_picked_block *a = va, *b = vb;
    if (a->size_bytes != b->size_bytes)
        return a->size_bytes > b->size_bytes ? -1 : 1;
    return a->serial < b->serial ? -1 : a->serial > b->serial;
}

static int compare_births(const void *va, const void *vb)
{
    const struct tmk_picked_block *a = va, *b = vb;
    if (a->alloc_ns != b->alloc_ns)
        return a->alloc_ns < b->alloc_ns ? -1 : 1;
    return a->serial < b->serial ? -1 : a->serial > b->serial;
}

/* The largest `most` of the picked blocks, in order of time; the caller's. */
static struct tmk_picked_block *largest_picked(const struct tmk_picked_blocks *s, uint64_t most)
{
    struct tmk_picked_block *blocks = tmk_xcalloc(s->n_blocks + 1, sizeof *blocks);
    for (uint64_t i = 0; i < s->n_blocks; i++)
        blocks[i] = s->blocks[i];
    if (s->n_blocks > most) {
        qsort(blocks, (size_t)s->n_blocks, sizeof *blocks, compare_sizes);
        qsort(blocks, (size_t)most, sizeof *blocks, compare_births);
    }
    return blocks;
}

static void put_block_times(struct tmk_page_columns *c, const struct tmk_picked_block *b,
                            uint64_t n)
{
    tmk_page_column(c, TMK_PAGE_DELTA, "blocks.alloc");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put(c, b[i].alloc_ns);
    tmk_page_column(c, TMK_PAGE_PLAIN, "blocks.life");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put_if(c, b[i].free_ns != UINT64_MAX, b[i].free_ns - b[i].alloc_ns);
    tmk_page_column(c, TMK_PAGE_PLAIN, "blocks.size");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put(c, b[i].size_bytes);
    tmk_page_column(c, TMK_PAGE_DELTA, "blocks.step");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put_if(c, b[i].step != TMK_NO_STEP, (uint64_t)b[i].step);
    tmk_page_column(c, TMK_PAGE_DELTA, "blocks.address");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put(c, b[i].address);
}

/* "further keys" of the pyramid have no name. */
static void put_block_keys(struct tmk_page_parts *p, const struct tmk_picked_block *b, uint64_t n)
{
    for (unsigned k = 0; k < TMK_N(names); k++) {
        tmk_page_column(p->columns, TMK_PAGE_PLAIN, "blocks.%s", names[k]);
        for (uint64_t i = 0; i < n; i++)
            tmk_page_put_text(p->columns,
                              tmk_pyramid_key(p->source->pyramid, dimensions[k], b[i].keys[k]));
    }
}

static uint32_t device_number(const struct tmk_page_parts *p, uint16_t device)
{
    const struct tmk_timeline *t = tmk_pyramid_timeline(p->source->pyramid);
    uint32_t d = 0;
    while (d + 1 < tmk_timeline_n_devices(t) && tmk_timeline_device(t, d) != device)
        d++;
    return d;
}

static void put_block_places(struct tmk_page_parts *p, const struct tmk_picked_block *b, uint64_t n)
{
    tmk_page_column(p->columns, TMK_PAGE_PLAIN, "blocks.stack");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put(p->columns, tmk_page_stack(p->stacks, b[i].stack));
    tmk_page_column(p->columns, TMK_PAGE_PLAIN, "blocks.tensor");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put_text(p->columns, name_of_tensor(p, b[i].name));
    tmk_page_column(p->columns, TMK_PAGE_PLAIN, "blocks.device");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put(p->columns, device_number(p, b[i].device));
}

void tmk_page_put_blocks(struct tmk_page_parts *p)
{
    const struct tmk_picked_blocks *s = tmk_pyramid_blocks(p->source->pyramid);
    uint64_t n = s->n_blocks < p->detail->n_blocks ? s->n_blocks : p->detail->n_blocks;
    bool has_window = n == s->n_blocks && s->window_start <= s->window_end;
    struct tmk_picked_block *blocks = largest_picked(s, n);
    tmk_tree_object(p->tree, "blocks");
    tmk_tree_u64(p->tree, "all", s->n_all);
    tmk_tree_u64(p->tree, "shown", n);
    tmk_tree_u64_if(p->tree, "window_start_ns", has_window, s->window_start);
    tmk_tree_u64_if(p->tree, "window_end_ns", has_window, s->window_end);
    tmk_tree_end(p->tree);
    put_block_times(p->columns, blocks, n);
    put_block_keys(p, blocks, n);
    put_block_places(p, blocks, n);
    free(blocks);
}

/* ---- at the peak ---- */

struct peak_row {
    uint32_t stack;
    const char *keys[TMK_N(names)]; /* equal texts are one pointer: those of a group */
    const char *tensor;
    uint64_t bytes, n_blocks;
};

static int compare_places(const struct peak_row *a, const struct peak_row *b)
{
    if (a->stack != b->stack)
        return a->stack < b->stack ? -1 : 1;
    for (unsigned k = 0; k < TMK_N(names); k++)
        if (a->keys[k] != b->keys[k])
            return a->keys[k] < b->keys[k] ? -1 : 1;
    return a->tensor == b->tensor ? 0 : a->tensor < b->tensor ? -1 : 1;
}

static int compare_peak_places(const void *a, const void *b)
{
    return compare_places(a, b);
}

/* Rows of equal bytes come in the order of their stacks, so that the page is the same each time. */
static int compare_peak_bytes(const void *va, const void *vb)
{
    const struct peak_row *a = va, *b = vb;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return a->stack < b->stack ? -1 : a->stack > b->stack;
}

/* A row for each block. */
static struct peak_row *rows_of_peak(const struct tmk_page_parts *p, uint64_t n,
                                     struct tmk_group **groups)
{
    struct peak_row *rows = tmk_xcalloc(n + 1, sizeof *rows);
    for (uint64_t i = 0; i < n; i++) {
        const struct tmk_block *b = tmk_peak_block(p->about->peak, i);
        rows[i] = (struct peak_row){.stack = b->stack, .bytes = b->size_bytes, .n_blocks = 1};
        rows[i].tensor = name_of_tensor(p, b->name);
        for (unsigned k = 0; k < TMK_N(names); k++)
            rows[i].keys[k] = tmk_group_key(groups[k], b);
    }
    return rows;
}

static uint64_t join_rows(struct peak_row *rows, uint64_t n)
{
    uint64_t joined = 0;
    qsort(rows, (size_t)n, sizeof *rows, compare_peak_places);
    for (uint64_t i = 0; i < n; i++) {
        if (joined > 0 && compare_places(&rows[joined - 1], &rows[i]) == 0) {
            rows[joined - 1].bytes += rows[i].bytes;
            rows[joined - 1].n_blocks += rows[i].n_blocks;
        } else {
            rows[joined++] = rows[i];
        }
    }
    qsort(rows, (size_t)joined, sizeof *rows, compare_peak_bytes);
    return joined;
}

static void put_peak_columns(struct tmk_page_parts *p, const struct peak_row *rows, uint64_t n)
{
    tmk_page_column(p->columns, TMK_PAGE_PLAIN, "peak.bytes");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put(p->columns, rows[i].bytes);
    tmk_page_column(p->columns, TMK_PAGE_PLAIN, "peak.blocks");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put(p->columns, rows[i].n_blocks);
    tmk_page_column(p->columns, TMK_PAGE_PLAIN, "peak.stack");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put(p->columns, tmk_page_stack(p->stacks, rows[i].stack));
    tmk_page_column(p->columns, TMK_PAGE_PLAIN, "peak.tensor");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put_text(p->columns, rows[i].tensor);
    for (unsigned k = 0; k < TMK_N(names); k++) {
        tmk_page_column(p->columns, TMK_PAGE_PLAIN, "peak.%s", names[k]);
        for (uint64_t i = 0; i < n; i++)
            tmk_page_put_text(p->columns, rows[i].keys[k]);
    }
}

void tmk_page_put_peak(struct tmk_page_parts *p)
{
    struct tmk_peak *peak = p->about->peak;
    if (!tmk_tree_object_if(p->tree, "peak", tmk_peak_found(peak)))
        return;
    struct tmk_group *groups[TMK_N(names)] = {0};
    for (unsigned k = 0; k < TMK_N(names); k++)
        if (tmk_group_open(tmk_peak_labels(peak), dimensions[k], &groups[k]) < 0)
            tmk_die("out of memory");
    uint64_t n_blocks = tmk_peak_n_blocks(peak), shown = 0;
    struct peak_row *rows = rows_of_peak(p, n_blocks, groups);
    uint64_t n = join_rows(rows, n_blocks);
    uint64_t n_shown = n < p->detail->n_peak_rows ? n : p->detail->n_peak_rows;
    put_peak_columns(p, rows, n_shown);
    for (uint64_t i = 0; i < n_shown; i++)
        shown += rows[i].bytes;
    tmk_tree_u64(p->tree, "time_ns", tmk_peak_time_ns(peak));
    tmk_tree_u64(p->tree, "bytes", tmk_peak_bytes(peak));
    tmk_tree_u64(p->tree, "blocks", n_blocks);
    tmk_tree_u64(p->tree, "rows", n);
    tmk_tree_u64(p->tree, "rows_shown", n_shown);
    tmk_tree_u64(p->tree, "bytes_shown", shown);
    tmk_tree_u64(p->tree, "device", device_number(p, tmk_peak_device(peak)));
    tmk_tree_end(p->tree);
    free(rows);
    for (unsigned k = 0; k < TMK_N(names); k++)
        tmk_group_close(groups[k]);
}

/* ---- in their segments ---- */

static uint64_t put_map_segments(struct tmk_page_parts *p, const struct tmk_frag_device *d)
{
    uint64_t n = 0, n_blocks = 0;
    tmk_page_column(p->columns, TMK_PAGE_DELTA, "map.address");
    for (uint64_t i = 0; i < d->n_segments && n_blocks <= p->detail->n_map_blocks; i++, n++) {
        tmk_page_put(p->columns, d->segments[i].address);
        n_blocks += d->segments[i].n_blocks;
    }
    tmk_page_column(p->columns, TMK_PAGE_PLAIN, "map.size");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put(p->columns, d->segments[i].size_bytes);
    tmk_page_column(p->columns, TMK_PAGE_PLAIN, "map.blocks");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put(p->columns, d->segments[i].n_blocks);
    tmk_page_column(p->columns, TMK_PAGE_PLAIN, "map.small");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put(p->columns, d->segments[i].pool == TMK_FRAG_SMALL);
    return n;
}

/* What a column of blocks in segments has. */
enum map_field { MAP_START, MAP_BYTES, MAP_CATEGORY, MAP_TENSOR, MAP_STACK };

static void put_map_field(struct tmk_page_parts *p, struct tmk_group *group, const char *name,
                          enum map_field field, uint64_t n_segments)
{
    const struct tmk_fragmentation *f = p->about->frag;
    const struct tmk_frag_device *d = tmk_fragmentation_get(f, 0);
    tmk_page_column(p->columns, TMK_PAGE_PLAIN, "map.%s", name);
    for (uint64_t i = 0; i < n_segments; i++) {
        const struct tmk_frag_segment *s = &d->segments[i];
        for (uint64_t k = 0; k < s->n_blocks; k++) {
            const struct tmk_block *b = tmk_fragmentation_block(f, 0, s->first_block + k);
            if (field == MAP_START)
                tmk_page_put(p->columns, b->address - s->address);
            else if (field == MAP_BYTES)
                tmk_page_put(p->columns, b->size_bytes);
            else if (field == MAP_CATEGORY)
                tmk_page_put_text(p->columns, tmk_group_key(group, b));
            else if (field == MAP_TENSOR)
                tmk_page_put_text(p->columns, name_of_tensor(p, b->name));
            else
                tmk_page_put(p->columns, tmk_page_stack(p->stacks, b->stack));
        }
    }
}

/* The device with most reserved; only where the driver's segments were seen. */
void tmk_page_put_map(struct tmk_page_parts *p)
{
    const struct tmk_fragmentation *f = p->about->frag;
    const struct tmk_frag_device *d =
        tmk_fragmentation_n(f) > 0 ? tmk_fragmentation_get(f, 0) : NULL;
    char name[24];
    if (!tmk_tree_object_if(p->tree, "map", d && d->has_segments))
        return;
    struct tmk_group *group = NULL;
    if (tmk_group_open(tmk_fragmentation_labels(f), TMK_BY_CATEGORY, &group) < 0)
        tmk_die("out of memory");
    uint64_t n = put_map_segments(p, d);
    put_map_field(p, group, "start", MAP_START, n);
    put_map_field(p, group, "bytes", MAP_BYTES, n);
    put_map_field(p, group, "category", MAP_CATEGORY, n);
    put_map_field(p, group, "tensor", MAP_TENSOR, n);
    put_map_field(p, group, "stack", MAP_STACK, n);
    tmk_tree_text(p->tree, "device", tmk_device_name(d->device, name));
    tmk_tree_u64(p->tree, "time_ns", d->time_ns);
    tmk_tree_u64(p->tree, "segments", d->n_segments);
    tmk_tree_u64(p->tree, "segments_shown", n);
    tmk_tree_end(p->tree);
    tmk_group_close(group);
}
