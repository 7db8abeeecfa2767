/* SPDX-License-Identifier: MIT */
/* sql/scan.c - see scan.h. */
#include "sql/scan.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sql/plan.h"
#include "sql/rows.h"
#include "sql/store.h"

/* ---- slices ---- */

/* Make rows begin..end-1 of the columns in s->cells the slice. */
static void set_slice(struct tmk_scan *s, uint64_t begin, uint64_t end)
{
    bool backwards = s->plan->backwards;
    s->n_before += s->n_slice;
    s->n_slice = end - begin;
    s->row = backwards ? end - 1 : begin;
    s->last = backwards ? begin : end - 1;
    s->stride = backwards ? -1 : 1;
}

static void let_go_slice(struct tmk_scan *s)
{
    if (s->pinned)
        tmk_store_unpin(&s->table->store, s->pinned);
    s->pinned = NULL;
}

/* Decode a segment; its rows within bounds are *ret_begin up to *ret_end. It is pinned even when
 * empty. */
static int load_segment(struct tmk_scan *s, struct tmk_segment *segment, enum tmk_overlap overlap,
                        struct tmk_column_values *cells, uint64_t *ret_begin, uint64_t *ret_end,
                        struct tmk_error *err)
{
    struct tmk_store *store = &s->table->store;
    uint64_t wanted = s->plan->wanted;
    if (overlap == TMK_ACROSS)
        wanted |= UINT64_C(1) << s->bounds.column;
    int rc = tmk_store_pin(store, segment, wanted, err);
    if (rc < 0)
        return rc;
    tmk_store_cells(store, segment, wanted, cells);
    *ret_begin = 0;
    *ret_end = segment->n_rows;
    if (overlap == TMK_ACROSS)
        tmk_bounds_rows(&s->bounds, &cells[s->bounds.column], segment->n_rows, ret_begin, ret_end);
    return 0;
}

/* ---- natural order ---- */

static int next_segment(struct tmk_scan *s, struct tmk_error *err)
{
    struct tmk_store *store = &s->table->store;
    let_go_slice(s);
    while (s->n_left > 0) {
        uint32_t i = s->plan->backwards ? s->n_left - 1 : store->n_segments - s->n_left;
        struct tmk_segment *segment = &store->segments[i];
        enum tmk_overlap overlap = tmk_store_overlap(store, segment, &s->bounds);
        s->n_left--;
        if (overlap == TMK_OUTSIDE)
            continue;
        uint64_t begin, end;
        int rc = load_segment(s, segment, overlap, s->cells, &begin, &end, err);
        if (rc < 0)
            return rc;
        s->pinned = segment;
        if (begin < end) {
            set_slice(s, begin, end);
            return 0;
        }
        let_go_slice(s);
    }
    s->done = true;
    return 0;
}

/* ---- processes merged ---- */

struct tmk_merge_source {
    uint32_t first, n_left;      /* segments */
    struct tmk_segment *segment; /* pinned; NULL: at its end */
    uint64_t begin, end;         /* its remaining rows */
    struct tmk_column_values cells[TMK_MAX_COLUMNS];
    const int64_t *keys;
};

static int advance_source(struct tmk_scan *s, struct tmk_merge_source *m, struct tmk_error *err)
{
    struct tmk_store *store = &s->table->store;
    bool backwards = s->plan->backwards;
    while (m->begin == m->end) {
        if (m->segment)
            tmk_store_unpin(store, m->segment);
        m->segment = NULL;
        if (m->n_left == 0)
            return 0;
        m->n_left--;
        uint32_t i = backwards ? m->first + m->n_left : m->first++;
        enum tmk_overlap overlap = tmk_store_overlap(store, &store->segments[i], &s->bounds);
        if (overlap == TMK_OUTSIDE)
            continue;
        int rc = load_segment(s, &store->segments[i], overlap, m->cells, &m->begin, &m->end, err);
        if (rc < 0)
            return rc;
        m->segment = &store->segments[i];
        m->keys = m->cells[s->plan->merge_by].data;
    }
    return 0;
}

static int64_t next_key(const struct tmk_scan *s, const struct tmk_merge_source *m)
{
    return m->keys[s->plan->backwards ? m->end - 1 : m->begin];
}

/* Take the rows with the first key from the source. */
static void cut_run(struct tmk_scan *s, struct tmk_merge_source *m)
{
    int64_t key = next_key(s, m);
    uint64_t begin = m->begin, end = m->end;
    if (s->plan->backwards) {
        begin = end - 1;
        while (begin > m->begin && m->keys[begin - 1] == key)
            begin--;
        m->end = begin;
    } else {
        end = begin + 1;
        while (end < m->end && m->keys[end] == key)
            end++;
        m->begin = end;
    }
    memcpy(s->cells, m->cells, sizeof s->cells);
    s->pinned = m->segment;
    m->segment->n_pins++; /* the source may leave the segment before the slice is read */
    set_slice(s, begin, end);
}

static int next_merge_run(struct tmk_scan *s, struct tmk_error *err)
{
    let_go_slice(s);
    struct tmk_merge_source *best = NULL;
    for (uint32_t i = 0; i < s->table->store.n_sources; i++) {
        struct tmk_merge_source *m = &s->merged[i];
        int rc = advance_source(s, m, err);
        if (rc < 0)
            return rc;
        if (!m->segment)
            continue;
        if (!best || (s->plan->backwards ? next_key(s, m) > next_key(s, best)
                                         : next_key(s, m) < next_key(s, best)))
            best = m;
    }
    if (best)
        cut_run(s, best);
    s->done = !best;
    return 0;
}

static int begin_merge(struct tmk_scan *s, struct tmk_error *err)
{
    const struct tmk_store *store = &s->table->store;
    s->merged = calloc((size_t)store->n_sources + 1, sizeof *s->merged);
    if (!s->merged)
        return tmk_fail(err, TMK_ENOMEM, "out of memory");
    for (uint32_t i = store->n_segments; i-- > 0;) {
        struct tmk_merge_source *m = &s->merged[store->segments[i].source];
        m->first = i;
        m->n_left++;
    }
    s->next = next_merge_run;
    return 0;
}

/* ---- bins ---- */

static int next_block(struct tmk_scan *s, struct tmk_error *err)
{
    (void)err;
    bool backwards = s->plan->backwards;
    if (s->block)
        s->block = backwards ? s->block->previous : s->block->next;
    while (!s->block && s->at < s->n_order) {
        const struct tmk_bin *bin = &s->bins->bins[s->order[s->at++]];
        s->block = backwards ? bin->last : bin->first;
    }
    s->done = !s->block;
    if (s->done)
        return 0;
    tmk_bins_cells(s->bins, s->order[s->at - 1], s->block, s->plan->wanted, s->cells);
    set_slice(s, 0, s->block->n);
    return 0;
}

/* Put bins in front, in place of those at `i`. */
static void put_bins_first(struct tmk_table_data *t, uint32_t i, struct tmk_bins *b)
{
    for (; i > 0; i--)
        t->bins[i] = t->bins[i - 1];
    t->bins[0] = b;
}

/* Bins that fit, moved to the front; NULL when there are none. */
static struct tmk_bins *find_kept_bins(struct tmk_table_data *t, const struct tmk_plan *plan,
                                       const struct tmk_bounds *bounds)
{
    for (uint32_t i = 0; i < TMK_KEPT_BINS; i++) {
        struct tmk_bins *b = t->bins[i];
        if (!b || !tmk_bins_fit(b, plan, bounds))
            continue;
        put_bins_first(t, i, b);
        return b;
    }
    return NULL;
}

/* Put new bins in front and drop the oldest: those beyond the number kept, or when all together
 * are too large. Bins that are being read stay. Returns false when there is no place. */
static bool keep_bins(struct tmk_table_data *t, struct tmk_bins *b)
{
    uint32_t i = TMK_KEPT_BINS;
    while (i > 0 && t->bins[i - 1] && t->bins[i - 1]->n_pins > 0)
        i--;
    if (i == 0)
        return false;
    tmk_bins_close(t->bins[i - 1]);
    put_bins_first(t, i - 1, b);
    uint64_t n_bytes = b->slabs.n_bytes;
    for (i = 1; i < TMK_KEPT_BINS; i++) {
        if (!t->bins[i])
            continue;
        n_bytes += t->bins[i]->slabs.n_bytes;
        if (n_bytes > t->store.limit_bytes && t->bins[i]->n_pins == 0)
            t->bins[i] = tmk_bins_close(t->bins[i]);
    }
    return true;
}

static int begin_bins(struct tmk_scan *s, sqlite3_value **values, struct tmk_error *err)
{
    struct tmk_bins *b = find_kept_bins(s->table, s->plan, &s->bounds);
    if (!b) {
        int rc = tmk_bins_open(&s->table->store, s->plan, &s->bounds, &b, err);
        if (rc < 0 || !b)
            return rc;
        s->own_bins = !keep_bins(s->table, b);
    }
    b->n_pins++;
    s->bins = b;
    s->next = next_block;
    if (tmk_bins_select(b, s->plan, values, &s->order, &s->n_order) < 0)
        return tmk_fail(err, TMK_ENOMEM, "out of memory");
    return 0;
}

/* ---- scans ---- */

static struct tmk_bounds bounds_of_values(const struct tmk_plan *plan, sqlite3_value **values)
{
    struct tmk_bounds b = {.column = plan->bounded_by, .low = INT64_MIN, .high = INT64_MAX};
    for (uint32_t i = 0; i < plan->n_filters; i++)
        if (plan->filters[i].op != TMK_FILTER_ARG && plan->filters[i].column == plan->bounded_by)
            tmk_bounds_narrow(&b, (enum tmk_filter_op)plan->filters[i].op, values[i]);
    return b;
}

int tmk_scan_begin(struct tmk_scan *s, struct tmk_table_data *table, const struct tmk_plan *plan,
                   sqlite3_value **values, struct tmk_error *err)
{
    tmk_scan_end(s);
    s->done = false;
    s->table = table;
    s->plan = plan;
    s->bounds = bounds_of_values(plan, values);
    s->n_left = table->store.n_segments;
    s->next = next_segment;
    int rc = 0;
    if (plan->n_keys > 0)
        rc = begin_bins(s, values, err);
    else if (plan->merge_by >= 0)
        rc = begin_merge(s, err);
    return rc < 0 ? rc : s->next(s, err);
}

static void end_merge(struct tmk_scan *s, struct tmk_store *store)
{
    for (uint32_t i = 0; s->merged && i < store->n_sources; i++)
        if (s->merged[i].segment)
            tmk_store_unpin(store, s->merged[i].segment);
    free(s->merged);
}

void tmk_scan_end(struct tmk_scan *s)
{
    if (s->table) {
        let_go_slice(s);
        end_merge(s, &s->table->store);
    }
    free(s->order);
    if (s->bins)
        s->bins->n_pins--;
    if (s->own_bins)
        tmk_bins_close(s->bins);
    *s = (struct tmk_scan){.done = true};
}

int64_t tmk_scan_row_id(const struct tmk_scan *s)
{
    if (s->pinned)
        return (int64_t)((uint64_t)(s->pinned - s->table->store.segments) << 32 | s->row);
    const uint64_t *ids = s->bins && s->block ? tmk_bins_row_ids(s->bins, s->block) : NULL;
    return (int64_t)(ids ? ids[s->row] : s->n_before + s->row);
}

void tmk_table_data_fini(struct tmk_table_data *t)
{
    for (uint32_t i = 0; i < TMK_KEPT_BINS; i++)
        tmk_bins_close(t->bins[i]);
    tmk_store_fini(&t->store);
    *t = (struct tmk_table_data){0};
}
