/* SPDX-License-Identifier: MIT */
/* sql/bins.c - see bins.h.
 *
 * A bin is found level by level: an edge (level, node so far, value) leads to the next node, and
 * the last node is the bin. A level is one key, or two texts, with both numbers in one value. A
 * bin's rows lie in blocks that grow with it, cut from slabs:
 *
 *     bin -> block of 16 rows -> of 64 -> of 256 ...
 *            [8-byte columns, one after the other][4-byte columns] */
#include "sql/bins.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/index.h"
#include "kit/grow.h"
#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/slab.h"
#include "sql/store.h"
#include "sql/textpool.h"

enum {
    FIRST_ROOM = 16,
    LAST_ROOM = 4096, /* 32 KiB a column: a block fits a cache, few are needed */
};

struct edge {
    uint64_t parent; /* level << 32 | node */
    int64_t value;
    uint32_t node;
};

struct level {
    uint32_t column;
    int second; /* -1: none */
};

struct copied { /* a column to copy */
    const uint8_t *data;
    size_t index_mask, offset;
    uint32_t column;
};

struct filled { /* the block of a bin that is being filled */
    uint8_t *bytes;
    uint32_t n, room;
};

struct builder {
    struct tmk_store *store;
    struct tmk_bins *bins;
    struct edge *edges;
    uint64_t n_edges, edge_room;
    struct tmk_index edge_index; /* of number + 1 */
    uint32_t n_nodes;
    uint32_t *nodes; /* by row of the segment */
    uint64_t node_room;
    uint64_t keys; /* columns, as bits */
    struct level levels[TMK_MAX_KEYS];
    uint32_t n_levels;
    struct filled *filled; /* by bin */
    uint64_t filled_room;
    struct copied wide[TMK_MAX_COLUMNS], narrow[TMK_MAX_COLUMNS]; /* of 8 and of 4 bytes */
    struct copied shortened[TMK_MAX_COLUMNS]; /* 8-byte columns to be stored in 4 bytes */
    uint32_t n_wide, n_narrow, n_shortened;
    uint64_t too_long; /* columns that cannot be shortened after all */
};

/* ---- nodes ---- */

static inline uint64_t edge_hash(uint64_t parent, int64_t value)
{
    uint64_t mixed =
        ((uint64_t)value + parent * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);
    return mixed >> 32;
}

static inline const struct edge *find_edge(const struct builder *b, uint64_t parent, int64_t value)
{
    struct tmk_probe probe = tmk_index_probe(&b->edge_index, edge_hash(parent, value));
    for (uint32_t i; (i = tmk_probe_next(&probe)) != 0;)
        if (b->edges[i - 1].parent == parent && b->edges[i - 1].value == value)
            return &b->edges[i - 1];
    return NULL;
}

/* Add a bin with the key values of a row. */
static int add_bin(struct builder *b, const struct tmk_column_values *cells, uint64_t row);

static inline int64_t key_value(const struct builder *b, uint32_t column,
                                const struct tmk_column_values *cell, uint64_t row)
{
    row &= cell->index_mask;
    return b->store->def->specs[column].kind == TMK_CELL_TEXT
               ? (int64_t)((const uint32_t *)cell->data)[row]
               : ((const int64_t *)cell->data)[row];
}

static int add_node(struct builder *b, uint32_t level, uint64_t parent, int64_t value,
                    const struct tmk_column_values *cells, uint64_t row, uint32_t *ret_node)
{
    bool is_bin = level + 1 == b->n_levels;
    if (TMK_GROW(b->edges, b->n_edges + 1, b->edge_room) < 0 || tmk_grow_index(&b->edge_index) < 0)
        return TMK_ENOMEM;
    if (is_bin && add_bin(b, cells, row) < 0)
        return TMK_ENOMEM;
    uint32_t node = is_bin ? (uint32_t)b->bins->n_bins - 1 : b->n_nodes++;
    b->edges[b->n_edges++] = (struct edge){.parent = parent, .value = value, .node = node};
    tmk_index_add(&b->edge_index, edge_hash(parent, value), (uint32_t)b->n_edges);
    *ret_node = node;
    return 0;
}

static int add_bin(struct builder *b, const struct tmk_column_values *cells, uint64_t row)
{
    struct tmk_bins *bins = b->bins;
    if (TMK_GROW(bins->bins, bins->n_bins + 1, bins->bin_room) < 0)
        return TMK_ENOMEM;
    if (TMK_GROW(b->filled, bins->n_bins + 1, b->filled_room) < 0)
        return TMK_ENOMEM;
    b->filled[bins->n_bins] = (struct filled){0};
    uint64_t n_values = bins->n_bins * bins->n_keys;
    if (TMK_GROW(bins->values, n_values + bins->n_keys, bins->value_room) < 0 ||
        bins->n_bins >= UINT32_MAX - 1)
        return TMK_ENOMEM;
    for (uint32_t k = 0; k < bins->n_keys; k++)
        bins->values[n_values + k] = key_value(b, bins->keys[k], &cells[bins->keys[k]], row);
    bins->bins[bins->n_bins++] = (struct tmk_bin){0};
    return 0;
}

static inline int64_t level_value(const struct builder *b, const struct level *l,
                                  const struct tmk_column_values *cells, uint64_t row)
{
    int64_t value = key_value(b, l->column, &cells[l->column], row);
    if (l->second < 0)
        return value;
    return value << 32 | key_value(b, (uint32_t)l->second, &cells[l->second], row);
}

/* Lead all rows from their node one level further. */
static int follow_level(struct builder *b, uint32_t level, const struct tmk_column_values *cells,
                        uint64_t begin, uint64_t end)
{
    const struct level *l = &b->levels[level];
    uint64_t last_parent = UINT64_MAX;
    int64_t last_value = 0;
    uint32_t last_node = 0;
    for (uint64_t row = begin; row < end; row++) {
        int64_t value = level_value(b, l, cells, row);
        uint64_t parent = (uint64_t)level << 32 | b->nodes[row];
        if (parent != last_parent || value != last_value) {
            const struct edge *edge = find_edge(b, parent, value);
            if (edge)
                last_node = edge->node;
            else if (add_node(b, level, parent, value, cells, row, &last_node) < 0)
                return TMK_ENOMEM;
            last_parent = parent;
            last_value = value;
        }
        b->nodes[row] = last_node;
    }
    return 0;
}

static int find_row_bins(struct builder *b, const struct tmk_column_values *cells, uint64_t begin,
                         uint64_t end)
{
    if (TMK_GROW(b->nodes, end, b->node_room) < 0)
        return TMK_ENOMEM;
    memset(b->nodes, 0, (size_t)end * sizeof *b->nodes);
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < b->n_levels; i++)
        rc = follow_level(b, i, cells, begin, end);
    return rc;
}

/* ---- rows ---- */

/* Go on in a new block: the one before is full. */
static int add_bin_block(struct tmk_bins *bins, struct tmk_bin *bin, struct filled *filled)
{
    uint32_t room = filled->room ? 4 * filled->room : FIRST_ROOM;
    room = room > LAST_ROOM ? LAST_ROOM : room;
    struct tmk_bin_block *block =
        tmk_slabs_take(&bins->slabs, sizeof *block + room * bins->row_bytes);
    if (!block)
        return TMK_ENOMEM;
    *block = (struct tmk_bin_block){.previous = bin->last, .n = room, .room = room};
    if (bin->last)
        bin->last->next = block;
    else
        bin->first = block;
    bin->last = block;
    *filled = (struct filled){.bytes = (uint8_t *)block->bytes, .room = room};
    return 0;
}

static void list_copied_columns(struct builder *b, const struct tmk_column_values *cells)
{
    const struct tmk_vtab_def *def = b->store->def;
    b->n_wide = b->n_narrow = b->n_shortened = 0;
    for (uint32_t c = 0; c < def->doc.n_columns; c++) {
        if (!(b->bins->wanted >> c & 1))
            continue;
        struct copied column = {.data = cells[c].data,
                                .index_mask = cells[c].index_mask,
                                .offset = b->bins->offsets[c],
                                .column = c};
        if (b->bins->shortened >> c & 1)
            b->shortened[b->n_shortened++] = column;
        else if (tmk_cell_bytes(def->specs[c].kind) == sizeof(int64_t))
            b->wide[b->n_wide++] = column;
        else
            b->narrow[b->n_narrow++] = column;
    }
}

static inline uint64_t wide_value(const struct copied *c, uint64_t row)
{
    return ((const uint64_t *)(const void *)c->data)[row & c->index_mask];
}

/* Convert bytes to TMK_CELL_SHORT_MB; *ret_fits becomes false when they do not fit. */
static inline int32_t shorten_bytes(uint64_t value, bool *ret_fits)
{
    int64_t units = (int64_t)value >> TMK_SHORT_MB_SHIFT;
    bool is_null = (int64_t)value == TMK_NULL_INT;
    bool is_whole = (value & ((1u << TMK_SHORT_MB_SHIFT) - 1)) == 0;
    *ret_fits &= is_null || (is_whole && units > INT32_MIN && units <= INT32_MAX);
    return is_null ? TMK_NULL_SHORT : (int32_t)units;
}

static inline void copy_row(struct builder *b, uint64_t row, const struct filled *f)
{
    for (uint32_t i = 0; i < b->n_wide; i++) {
        const struct copied *c = &b->wide[i];
        ((uint64_t *)(void *)(f->bytes + c->offset * f->room))[f->n] = wide_value(c, row);
    }
    for (uint32_t i = 0; i < b->n_narrow; i++) {
        const struct copied *c = &b->narrow[i];
        uint32_t value = ((const uint32_t *)(const void *)c->data)[row & c->index_mask];
        ((uint32_t *)(void *)(f->bytes + c->offset * f->room))[f->n] = value;
    }
    for (uint32_t i = 0; i < b->n_shortened; i++) {
        const struct copied *c = &b->shortened[i];
        bool fits = true;
        int32_t value = shorten_bytes(wide_value(c, row), &fits);
        ((int32_t *)(void *)(f->bytes + c->offset * f->room))[f->n] = value;
        if (__builtin_expect(!fits, 0))
            b->too_long |= UINT64_C(1) << c->column;
    }
}

static int copy_rows(struct builder *b, uint64_t segment, uint64_t begin, uint64_t end)
{
    struct tmk_bins *bins = b->bins;
    size_t ids = bins->offsets[TMK_MAX_COLUMNS];
    for (uint64_t row = begin; row < end; row++) {
        uint32_t i = b->nodes[row];
        struct filled *f = &b->filled[i];
        if (f->n == f->room && add_bin_block(bins, &bins->bins[i], f) < 0)
            return TMK_ENOMEM;
        copy_row(b, row, f);
        if (bins->by_row)
            ((uint64_t *)(void *)(f->bytes + ids * f->room))[f->n] = segment << 32 | row;
        f->n++;
    }
    return 0;
}

static int add_segment_rows(struct builder *b, uint32_t i, struct tmk_error *err)
{
    const struct tmk_bounds *bounds = &b->bins->bounds;
    struct tmk_segment *segment = &b->store->segments[i];
    enum tmk_overlap overlap = tmk_store_overlap(b->store, segment, bounds);
    if (overlap == TMK_OUTSIDE)
        return 0;
    uint64_t wanted = b->bins->wanted | b->keys;
    if (overlap == TMK_ACROSS)
        wanted |= UINT64_C(1) << bounds->column;
    struct tmk_column_values cells[TMK_MAX_COLUMNS];
    uint64_t begin = 0, end = 0;
    int rc = tmk_store_look(b->store, segment, wanted, cells, &end, err);
    if (rc < 0)
        return rc;
    if (overlap == TMK_ACROSS)
        tmk_bounds_rows(bounds, &cells[bounds->column], end, &begin, &end);
    list_copied_columns(b, cells);
    rc = find_row_bins(b, cells, begin, end);
    if (rc == 0)
        rc = copy_rows(b, i, begin, end);
    return rc < 0 ? tmk_fail(err, rc, "out of memory") : 0;
}

/* ---- opening ---- */

static size_t bytes_in_bins(const struct tmk_bins *bins, uint32_t column)
{
    return bins->shortened >> column & 1 ? sizeof(int32_t)
                                         : tmk_cell_bytes(bins->store->def->specs[column].kind);
}

/* Choose where columns begin in a block: the wide ones first, so that all are aligned. */
static void lay_out_columns(struct tmk_bins *bins)
{
    size_t at = 0;
    for (size_t bytes = sizeof(uint64_t); bytes >= sizeof(uint32_t); bytes /= 2) {
        for (uint32_t c = 0; c < bins->store->def->doc.n_columns; c++) {
            if (!(bins->wanted >> c & 1) || bytes_in_bins(bins, c) != bytes)
                continue;
            bins->offsets[c] = at;
            at += bytes;
        }
        if (bytes == sizeof(uint64_t) && bins->by_row) {
            bins->offsets[TMK_MAX_COLUMNS] = at;
            at += bytes;
        }
    }
    bins->row_bytes = at;
}

static void make_levels(struct builder *b)
{
    const struct tmk_column_spec *specs = b->store->def->specs;
    const struct tmk_bins *bins = b->bins;
    for (uint32_t k = 0; k < bins->n_keys; k++) {
        bool pair = k + 1 < bins->n_keys && specs[bins->keys[k]].kind == TMK_CELL_TEXT &&
                    specs[bins->keys[k + 1]].kind == TMK_CELL_TEXT;
        b->levels[b->n_levels++] =
            (struct level){.column = bins->keys[k], .second = pair ? bins->keys[k + 1] : -1};
        k += pair;
    }
}

/* Note lengths: the last block of a bin is mostly not full. */
static void note_lengths(struct builder *b)
{
    for (uint64_t i = 0; b->filled && i < b->bins->n_bins; i++)
        if (b->bins->bins[i].last)
            b->bins->bins[i].last->n = b->filled[i].n;
}

/* Build the bins. Stops early when a column turns out to be too long: `too_long`. */
static int build_bins(struct builder *b, struct tmk_error *err)
{
    make_levels(b);
    lay_out_columns(b->bins);
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && !b->too_long && i < b->store->n_segments; i++)
        rc = add_segment_rows(b, i, err);
    if (rc == 0)
        note_lengths(b);
    free(b->edges);
    free(b->edge_index.slots);
    free(b->nodes);
    free(b->filled);
    return rc;
}

static struct tmk_bins *make_bins(struct tmk_store *store, const struct tmk_plan *plan,
                                  const struct tmk_bounds *bounds, uint64_t too_long)
{
    struct tmk_bins *bins = calloc(1, sizeof *bins);
    if (!bins)
        return NULL;
    *bins = (struct tmk_bins){.store = store,
                              .n_keys = plan->n_keys,
                              .wanted = plan->wanted,
                              .by_row = plan->by_row,
                              .bounds = *bounds};
    for (uint32_t k = 0; k < plan->n_keys; k++) {
        bins->keys[k] = plan->keys[k];
        bins->wanted &= ~(UINT64_C(1) << plan->keys[k]);
    }
    for (uint32_t c = 0; c < store->def->doc.n_columns; c++)
        if (store->def->specs[c].kind == TMK_CELL_MB)
            bins->shortened |= UINT64_C(1) << c;
    bins->shortened &= bins->wanted & ~too_long;
    return bins;
}

int tmk_bins_open(struct tmk_store *store, const struct tmk_plan *plan,
                  const struct tmk_bounds *bounds, struct tmk_bins **ret_bins,
                  struct tmk_error *err)
{
    uint64_t too_long = 0;
    for (;;) {
        struct builder b = {.store = store, .bins = make_bins(store, plan, bounds, too_long)};
        if (!b.bins)
            return tmk_fail(err, TMK_ENOMEM, "out of memory");
        for (uint32_t k = 0; k < plan->n_keys; k++)
            b.keys |= UINT64_C(1) << plan->keys[k];
        int rc = build_bins(&b, err);
        if (rc == 0 && !b.too_long) {
            *ret_bins = b.bins;
            return 0;
        }
        tmk_bins_close(b.bins);
        if (rc < 0)
            return rc;
        too_long |= b.too_long; /* mostly found in the first segment */
    }
}

struct tmk_bins *tmk_bins_close(struct tmk_bins *b)
{
    if (!b)
        return NULL;
    tmk_slabs_fini(&b->slabs);
    free(b->bins);
    free(b->values);
    free(b);
    return NULL;
}

bool tmk_bins_fit(const struct tmk_bins *b, const struct tmk_plan *plan,
                  const struct tmk_bounds *bounds)
{
    uint64_t keys = 0;
    if (b->n_keys != plan->n_keys || (plan->by_row && !b->by_row) ||
        b->bounds.column != bounds->column || b->bounds.low != bounds->low ||
        b->bounds.high != bounds->high)
        return false;
    for (uint32_t k = 0; k < b->n_keys; k++) {
        keys |= UINT64_C(1) << b->keys[k];
        if (b->keys[k] != plan->keys[k])
            return false;
    }
    return (plan->wanted & ~keys & ~b->wanted) == 0;
}

/* ---- choosing and ordering bins ---- */

static bool is_text_key(const struct tmk_bins *b, uint32_t key)
{
    return b->store->def->specs[b->keys[key]].kind == TMK_CELL_TEXT;
}

static bool text_passes(const struct tmk_bins *b, uint32_t id, enum tmk_filter_op op,
                        sqlite3_value *value)
{
    if (op != TMK_FILTER_EQ)
        return (id == 0) == (op == TMK_FILTER_IS_NULL);
    if (sqlite3_value_type(value) != SQLITE_TEXT) /* SQLite decides, row by row */
        return true;
    const unsigned char *text = sqlite3_value_text(value);
    size_t n = (size_t)sqlite3_value_bytes(value);
    return id && text && n == (size_t)tmk_textpool_length(b->store->pool, id) &&
           memcmp(text, tmk_textpool_text(b->store->pool, id), n) == 0;
}

static bool bin_passes(const struct tmk_bins *b, uint64_t i, const struct tmk_plan *plan,
                       sqlite3_value **values)
{
    for (uint32_t f = 0; f < plan->n_filters; f++) {
        uint32_t k = 0;
        while (k < b->n_keys && b->keys[k] != plan->filters[f].column)
            k++;
        enum tmk_filter_op op = (enum tmk_filter_op)plan->filters[f].op;
        if (k == b->n_keys || op == TMK_FILTER_ARG)
            continue;
        int64_t key = b->values[i * b->n_keys + k];
        struct tmk_bounds bounds = {.low = INT64_MIN, .high = INT64_MAX};
        if (is_text_key(b, k)) {
            if (!text_passes(b, (uint32_t)key, op, values[f]))
                return false;
            continue;
        }
        tmk_bounds_narrow(&bounds, op, values[f]);
        if (key < bounds.low || key > bounds.high)
            return false;
    }
    return true;
}

struct bin_order {
    const struct tmk_bins *bins;
    const struct tmk_plan *plan;
};

static int by_keys(const void *va, const void *vb, void *arg)
{
    const struct bin_order *o = arg;
    const struct tmk_bins *b = o->bins;
    uint64_t ia = *(const uint64_t *)va, ib = *(const uint64_t *)vb;
    for (uint32_t k = 0; k < b->n_keys; k++) {
        int64_t x = b->values[ia * b->n_keys + k], y = b->values[ib * b->n_keys + k];
        int order = is_text_key(b, k)
                        ? tmk_textpool_compare(b->store->pool, (uint32_t)x, (uint32_t)y)
                        : (x > y) - (x < y);
        if (order)
            return o->plan->falling[k] ? -order : order;
    }
    return 0;
}

int tmk_bins_select(const struct tmk_bins *b, const struct tmk_plan *plan, sqlite3_value **values,
                    uint64_t **ret_order, uint64_t *ret_n)
{
    uint64_t *order = malloc((size_t)(b->n_bins + 1) * sizeof *order);
    if (!order)
        return TMK_ENOMEM;
    uint64_t n = 0;
    for (uint64_t i = 0; i < b->n_bins; i++)
        if (bin_passes(b, i, plan, values))
            order[n++] = i;
    struct bin_order o = {.bins = b, .plan = plan};
    qsort_r(order, (size_t)n, sizeof *order, by_keys, &o);
    *ret_order = order;
    *ret_n = n;
    return 0;
}

/* ---- reading ---- */

void tmk_bins_cells(const struct tmk_bins *b, uint64_t i, const struct tmk_bin_block *block,
                    uint64_t wanted, struct tmk_column_values *cells)
{
    for (uint64_t left = wanted & b->wanted; left; left &= left - 1) {
        unsigned c = (unsigned)__builtin_ctzll(left);
        cells[c].data = (const uint8_t *)block->bytes + b->offsets[c] * block->room;
        cells[c].index_mask = SIZE_MAX;
        cells[c].kind = b->shortened >> c & 1 ? TMK_CELL_SHORT_MB : b->store->def->specs[c].kind;
    }
    for (uint32_t k = 0; k < b->n_keys; k++) /* a text's number is the low half of the value */
        cells[b->keys[k]] = (struct tmk_column_values){
            .data = &b->values[i * b->n_keys + k], .kind = b->store->def->specs[b->keys[k]].kind};
}

const uint64_t *tmk_bins_row_ids(const struct tmk_bins *b, const struct tmk_bin_block *block)
{
    if (!b->by_row)
        return NULL;
    return (const uint64_t *)(const void *)((const uint8_t *)block->bytes +
                                            b->offsets[TMK_MAX_COLUMNS] * block->room);
}
