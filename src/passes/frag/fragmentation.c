/* SPDX-License-Identifier: MIT */
/* passes/frag/fragmentation.c - see fragmentation.h.
 *
 * Blocks and segments are sorted by address once and walked through together. */
#include "passes/frag/fragmentation.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit/amount.h"
#include "kit/arena.h"
#include "model/holders.h"
#include "passes/frag/frag_moment.h"
#include "passes/group.h"
#include "trace/replay.h"
#include "trace/segments.h"
#include "trace/state.h"

enum {
    SMALL_SEGMENT = 2 << 20, /* of the small pool, cudaMalloc'ed or mapped */
    SMALL_REQUEST = 1 << 20, /* the largest that the small pool serves */
    DRIVER_GRANULARITY = 2 << 20,
};

struct frag_entry {
    struct tmk_frag_device device;
    const struct tmk_frag_candidate *candidate; /* its blocks */
};

struct tmk_fragmentation {
    const struct tmk_process *p;
    struct tmk_frag_moments moments;
    struct tmk_labels labels;
    struct tmk_holders *holders;
    struct tmk_arena arena;
    struct frag_entry *entries;
    uint64_t n_entries;
};

/* ---- segments ---- */

/* True for segments of the framework's allocator: segments known to be another owner's do not
 * count. */
static bool is_segment_counted(struct tmk_fragmentation *f, const struct tmk_driver_segment *g)
{
    if (g->kind != TMK_SEGMENT_DEVICE && g->kind != TMK_SEGMENT_MAPPING)
        return false;
    const char *owner = tmk_holders_get(f->holders, g->stack)->owner;
    return !owner[0] || strcmp(owner, "torch") == 0;
}

static int by_segment_address(const void *va, const void *vb)
{
    const struct tmk_driver_segment *a = va, *b = vb;
    return (a->address > b->address) - (a->address < b->address);
}

static int by_block_address(const void *va, const void *vb)
{
    const struct tmk_block *a = va, *b = vb;
    return (a->address > b->address) - (a->address < b->address);
}

static enum tmk_frag_pool pool_of(const struct tmk_driver_segment *g)
{
    return g->size_bytes <= SMALL_SEGMENT ? TMK_FRAG_SMALL : TMK_FRAG_LARGE;
}

/* Mappings of one expandable segment are adjacent and have pages of one size. */
static bool is_joined_mapping(const struct tmk_frag_segment *before,
                              const struct tmk_driver_segment *g)
{
    return before->is_expandable && g->kind == TMK_SEGMENT_MAPPING && before->pool == pool_of(g) &&
           before->address + before->size_bytes == g->address;
}

/* Sort the moment's segments; returns those that count, joined. */
static struct tmk_frag_segment *list_segments(struct tmk_fragmentation *f,
                                              struct tmk_frag_candidate *c, uint64_t *ret_n)
{
    struct tmk_frag_segment *list = tmk_arena_take(&f->arena, (c->n_segments + 1) * sizeof *list);
    uint64_t n = 0;
    if (c->n_segments > 1)
        qsort(c->segments, (size_t)c->n_segments, sizeof *c->segments, by_segment_address);
    for (uint64_t i = 0; list && i < c->n_segments; i++) {
        const struct tmk_driver_segment *g = &c->segments[i];
        if (!is_segment_counted(f, g))
            continue;
        if (n > 0 && is_joined_mapping(&list[n - 1], g)) {
            list[n - 1].size_bytes += g->size_bytes;
            continue;
        }
        list[n++] = (struct tmk_frag_segment){
            .address = g->address,
            .size_bytes = g->size_bytes,
            .page_bytes = g->kind == TMK_SEGMENT_MAPPING ? g->size_bytes : 0,
            .pool = pool_of(g),
            .is_expandable = g->kind == TMK_SEGMENT_MAPPING,
        };
    }
    *ret_n = n;
    return list;
}

/* ---- gaps ---- */

/* The whole pages of an expandable segment that lie in a gap. */
static uint64_t whole_page_bytes(const struct tmk_frag_segment *g, uint64_t from, uint64_t to)
{
    uint64_t page = g->page_bytes;
    uint64_t first = (from - g->address + page - 1) / page, last = (to - g->address) / page;
    return last > first ? (last - first) * page : 0;
}

static void add_gap(struct tmk_frag_segment *g, struct tmk_frag_sum *sum, uint64_t from,
                    uint64_t to)
{
    uint64_t bytes = to - from;
    if (bytes == 0)
        return;
    g->free_bytes += bytes;
    g->largest_bytes = bytes > g->largest_bytes ? bytes : g->largest_bytes;
    sum->n_free++;
    if (g->is_expandable && g->page_bytes)
        sum->whole_bytes += whole_page_bytes(g, from, to);
    else if (bytes == g->size_bytes)
        sum->whole_bytes += bytes;
}

/* The largest request that a free block of this pool serves. */
static uint64_t servable_bytes(enum tmk_frag_pool pool, uint64_t bytes)
{
    if (pool == TMK_FRAG_SMALL)
        return bytes < SMALL_REQUEST ? bytes : SMALL_REQUEST;
    return bytes > SMALL_REQUEST ? bytes : 0;
}

static void add_to_frag_sum(struct tmk_frag_sum *sum, const struct tmk_frag_segment *g)
{
    uint64_t serves = servable_bytes(g->pool, g->largest_bytes);
    sum->reserved_bytes += g->size_bytes;
    sum->allocated_bytes += g->size_bytes - g->free_bytes;
    sum->free_bytes += g->free_bytes;
    sum->largest_bytes =
        g->largest_bytes > sum->largest_bytes ? g->largest_bytes : sum->largest_bytes;
    sum->allocatable_bytes = serves > sum->allocatable_bytes ? serves : sum->allocatable_bytes;
    sum->n_segments++;
    sum->n_blocks += g->n_blocks;
}

/* Find the blocks from number `at` on that lie in the segment. Blocks that a damaged trace has
 * across its ends or each other count once. Returns the number after the last. */
static uint64_t walk_segment(const struct tmk_frag_candidate *c, uint64_t at,
                             struct tmk_frag_segment *g, struct tmk_frag_sum *sum)
{
    uint64_t end = g->address + g->size_bytes, done = g->address;
    g->first_block = at;
    for (; at < c->n_blocks && c->blocks[at].address < end; at++) {
        const struct tmk_block *b = &c->blocks[at];
        uint64_t stop = b->size_bytes < end - b->address ? b->address + b->size_bytes : end;
        if (b->address > done)
            add_gap(g, sum, done, b->address);
        done = stop > done ? stop : done;
        g->n_blocks++;
    }
    add_gap(g, sum, done, end);
    return at;
}

/* ---- pools ---- */

static struct tmk_frag_pool_row *pool_row_of(struct tmk_frag_device *d,
                                             struct tmk_frag_pool_row *rows,
                                             const struct tmk_frag_pool_row *key)
{
    for (uint64_t i = 0; i < d->n_pools; i++)
        if (rows[i].pool == key->pool && rows[i].has_stream == key->has_stream &&
            rows[i].stream == key->stream)
            return &rows[i];
    rows[d->n_pools] = *key;
    return &rows[d->n_pools++];
}

/* The first trace of a block in the segment; NULL: none. */
static const struct tmk_frag_trace *trace_in_segment(const struct tmk_frag_candidate *c,
                                                     const struct tmk_frag_segment *g)
{
    uint64_t low = 0, high = c->n_traces;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (c->traces[middle].address < g->address)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_in = low < c->n_traces && c->traces[low].address - g->address < g->size_bytes;
    return is_in ? &c->traces[low] : NULL;
}

/* A segment serves the stream of its blocks. Without blocks, it serves the only stream that there
 * is, or the stream of a block that was in it before; else the stream is not known. */
static struct tmk_frag_pool_row pool_key_of(const struct tmk_frag_candidate *c,
                                            const struct tmk_frag_segment *g)
{
    struct tmk_frag_pool_row key = {.pool = g->pool, .has_stream = true};
    const struct tmk_frag_trace *trace = trace_in_segment(c, g);
    if (g->n_blocks > 0)
        key.stream = c->blocks[g->first_block].stream;
    else if (c->has_stream && !c->has_streams)
        key.stream = c->stream;
    else if (trace)
        key.stream = trace->stream;
    else
        key.has_stream = false;
    return key;
}

static int by_pool(const void *va, const void *vb)
{
    const struct tmk_frag_pool_row *a = va, *b = vb;
    if (a->pool != b->pool)
        return a->pool < b->pool ? -1 : 1;
    if (a->has_stream != b->has_stream)
        return a->has_stream ? -1 : 1;
    return (a->stream > b->stream) - (a->stream < b->stream);
}

static int compare_free_bytes(const void *va, const void *vb)
{
    const struct tmk_frag_segment *a = va, *b = vb;
    if (a->free_bytes != b->free_bytes)
        return a->free_bytes > b->free_bytes ? -1 : 1;
    return (a->address > b->address) - (a->address < b->address);
}

/* ---- a device ---- */

static int add_segments(struct tmk_fragmentation *f, struct tmk_frag_candidate *c,
                        struct tmk_frag_device *d)
{
    struct tmk_frag_segment *list = list_segments(f, c, &d->n_segments);
    struct tmk_frag_pool_row *rows = tmk_arena_take(&f->arena, (d->n_segments + 1) * sizeof *rows);
    if (!list || !rows)
        return TMK_ENOMEM;
    uint64_t at = 0;
    for (uint64_t i = 0; i < d->n_segments; i++) {
        struct tmk_frag_sum gaps = {0};
        while (at < c->n_blocks && c->blocks[at].address < list[i].address)
            d->outside_bytes += c->blocks[at++].size_bytes;
        at = walk_segment(c, at, &list[i], &gaps);
        struct tmk_frag_pool_row key = pool_key_of(c, &list[i]);
        struct tmk_frag_sum *both[] = {&d->sum, &pool_row_of(d, rows, &key)->sum};
        for (size_t k = 0; k < 2; k++) {
            add_to_frag_sum(both[k], &list[i]);
            both[k]->n_free += gaps.n_free;
            both[k]->whole_bytes += gaps.whole_bytes;
        }
    }
    for (; at < c->n_blocks; at++)
        d->outside_bytes += c->blocks[at].size_bytes;
    qsort(list, (size_t)d->n_segments, sizeof *list, compare_free_bytes);
    qsort(rows, (size_t)d->n_pools, sizeof *rows, by_pool);
    d->segments = list;
    d->pools = rows;
    d->has_segments = d->n_segments > 0;
    return 0;
}

/* Without segments only totals are known, and nothing of the gaps. */
static void take_reserved_totals(const struct tmk_frag_candidate *c, struct tmk_frag_device *d)
{
    d->outside_bytes = 0;
    d->sum = (struct tmk_frag_sum){
        .reserved_bytes = c->has_reserved ? c->reserved_bytes : TMK_BYTES_UNKNOWN,
        .allocated_bytes = c->allocated_bytes,
        .free_bytes = !c->has_reserved ? TMK_BYTES_UNKNOWN
                      : c->reserved_bytes > c->allocated_bytes
                          ? c->reserved_bytes - c->allocated_bytes
                          : 0,
        .largest_bytes = TMK_BYTES_UNKNOWN,
        .allocatable_bytes = TMK_BYTES_UNKNOWN,
        .whole_bytes = TMK_BYTES_UNKNOWN,
        .n_blocks = c->n_blocks,
    };
}

/* A request that failed all the same met a limit that is not the device's. */
static uint64_t new_allocatable_bytes(const struct tmk_frag_candidate *c,
                                      const struct tmk_frag_device *d)
{
    if (!d->has_segments || c->left_bytes == TMK_BYTES_UNKNOWN)
        return TMK_BYTES_UNKNOWN;
    uint64_t bytes = c->left_bytes + d->sum.whole_bytes;
    bytes -= bytes % DRIVER_GRANULARITY;
    bytes = bytes > d->sum.allocatable_bytes ? bytes : d->sum.allocatable_bytes;
    return d->is_oom && bytes >= d->request_bytes ? TMK_BYTES_UNKNOWN : bytes;
}

static int add_frag_device(struct tmk_fragmentation *f, struct tmk_frag_candidate *c)
{
    struct tmk_frag_device d = {.device = c->device,
                                .time_ns = c->ns,
                                .step = c->step,
                                .is_oom = c->is_oom,
                                .request_bytes = c->request_bytes,
                                .capacity_bytes = c->total_bytes};
    if (c->n_blocks > 1)
        qsort(c->blocks, (size_t)c->n_blocks, sizeof *c->blocks, by_block_address);
    int rc = add_segments(f, c, &d);
    if (rc < 0)
        return rc;
    if (!d.has_segments)
        take_reserved_totals(c, &d);
    d.allocatable_new_bytes = new_allocatable_bytes(c, &d);
    if (!d.has_segments && !c->has_reserved)
        return 0; /* the host: there is no cache to speak of */
    f->entries[f->n_entries++] = (struct frag_entry){d, c};
    return 0;
}

/* ---- the pass ---- */

static void on_frag_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                          struct tmk_block *b)
{
    struct tmk_fragmentation *f = arg;
    tmk_frag_moments_event(&f->moments, rp, ev, b);
}

static void on_frag_restored(void *arg, const struct tmk_replay *rp)
{
    struct tmk_fragmentation *f = arg;
    tmk_frag_moments_restored(&f->moments, rp);
}

struct tmk_visitor tmk_fragmentation_visitor(struct tmk_fragmentation *f)
{
    return (struct tmk_visitor){.arg = f,
                                .kinds = TMK_FRAG_MOMENTS_KINDS,
                                .event = on_frag_event,
                                .restored = on_frag_restored};
}

static int by_reserved(const void *va, const void *vb)
{
    const struct tmk_frag_device *a = &((const struct frag_entry *)va)->device;
    const struct tmk_frag_device *b = &((const struct frag_entry *)vb)->device;
    if (a->sum.reserved_bytes != b->sum.reserved_bytes)
        return a->sum.reserved_bytes > b->sum.reserved_bytes ? -1 : 1;
    return (a->device > b->device) - (a->device < b->device);
}

int tmk_fragmentation_finish(struct tmk_fragmentation *f, const struct tmk_replay *rp,
                             struct tmk_error *err)
{
    f->entries = tmk_arena_take(&f->arena, (f->moments.n_devices + 1u) * sizeof *f->entries);
    int rc = f->entries ? tmk_labels_init(&f->labels, f->p, &rp->state) : TMK_ENOMEM;
    if (rc == 0)
        rc = tmk_frag_moments_collect(&f->moments, &rp->state);
    for (uint32_t i = 0; i < f->moments.n_devices && rc == 0; i++)
        if (f->moments.devices[i].found && !f->moments.is_given_up)
            rc = add_frag_device(f, &f->moments.devices[i]);
    if (rc == 0 && tmk_holders_failed(f->holders))
        rc = TMK_ENOMEM;
    if (rc == 0 && f->n_entries > 1)
        qsort(f->entries, (size_t)f->n_entries, sizeof *f->entries, by_reserved);
    return rc < 0 ? tmk_fail(err, rc, "no memory for blocks and segments") : 0;
}

int tmk_fragmentation_open(const struct tmk_process *p, const struct tmk_frag_moment *moment,
                           struct tmk_fragmentation **ret_frag)
{
    struct tmk_fragmentation *f = calloc(1, sizeof *f);
    if (!f)
        return TMK_ENOMEM;
    f->p = p;
    f->moments.moment = *moment;
    if (tmk_holders_open(p, &f->holders) < 0) {
        free(f);
        return TMK_ENOMEM;
    }
    *ret_frag = f;
    return 0;
}

struct tmk_fragmentation *tmk_fragmentation_close(struct tmk_fragmentation *f)
{
    if (!f)
        return NULL;
    tmk_frag_moments_fini(&f->moments);
    tmk_labels_fini(&f->labels);
    tmk_holders_close(f->holders);
    tmk_arena_fini(&f->arena);
    free(f);
    return NULL;
}

/* ---- asking ---- */

uint64_t tmk_fragmentation_n(const struct tmk_fragmentation *f)
{
    return f->n_entries;
}

const struct tmk_frag_device *tmk_fragmentation_get(const struct tmk_fragmentation *f, uint64_t i)
{
    return &f->entries[i].device;
}

const struct tmk_block *tmk_fragmentation_block(const struct tmk_fragmentation *f, uint64_t device,
                                                uint64_t i)
{
    return &f->entries[device].candidate->blocks[i];
}

uint64_t tmk_fragmentation_pinned(const struct tmk_fragmentation *f, uint64_t device,
                                  const struct tmk_frag_segment **ret, uint64_t max)
{
    const struct tmk_frag_device *d = &f->entries[device].device;
    uint64_t n = 0;
    for (uint64_t i = 0; i < d->n_segments; i++) {
        const struct tmk_frag_segment *g = &d->segments[i];
        if (g->n_blocks == 0 || g->free_bytes < g->size_bytes - g->free_bytes)
            continue;
        if (n < max)
            ret[n] = g;
        n++;
    }
    return n;
}

const struct tmk_labels *tmk_fragmentation_labels(const struct tmk_fragmentation *f)
{
    return &f->labels;
}
