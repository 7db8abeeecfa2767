/* SPDX-License-Identifier: MIT */
/* sql/store.c - see store.h. Rows are made in scratch memory that all segments share, then copied
 * to memory of exactly their size; rows that are only looked at are not copied. */
#include "sql/store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/valid.h"
#include "sql/rows.h"
#include "sql/source.h"
#include "sql/textpool.h"
#include "sql/walk.h"
#include "trace/layout.h"

#define LIMIT_BYTES (UINT64_C(512) << 20)
#define CHUNK_LIMIT_BYTES (UINT64_C(32) << 20)

#define ASSERT_VALID(s) TMK_ASSERT_VALID(tmk_store_is_valid(s), tmk_store_check_cost(s))

/* ---- segments ---- */

static uint32_t segments_of(const struct tmk_store *s, uint32_t source)
{
    return s->def->scope == TMK_SCOPE_CHUNK ? s->sources[source].n_chunks : 1;
}

int tmk_store_init(struct tmk_store *s, const struct tmk_vtab_def *def, struct tmk_source *sources,
                   uint32_t n_sources, struct tmk_textpool *pool, const int64_t *args)
{
    *s = (struct tmk_store){.def = def,
                            .sources = sources,
                            .n_sources = n_sources,
                            .pool = pool,
                            .limit_bytes =
                                def->scope == TMK_SCOPE_CHUNK ? CHUNK_LIMIT_BYTES : LIMIT_BYTES};
    memcpy(s->args, args ? args : def->arg_defaults, sizeof s->args);
    tmk_rows_init(&s->scratch, def->specs, (uint32_t)def->doc.n_columns);
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_sources; i++)
        n += segments_of(s, i);
    s->segments = calloc((size_t)n + 1, sizeof *s->segments);
    if (!s->segments)
        return TMK_ENOMEM;
    for (uint32_t i = 0; i < n_sources; i++)
        for (uint32_t k = 0; k < segments_of(s, i); k++)
            s->segments[s->n_segments++] = (struct tmk_segment){.source = i, .chunk = k};
    ASSERT_VALID(s);
    return 0;
}

static void forget_segment_columns(struct tmk_store *s, struct tmk_segment *segment)
{
    while (segment->blocks) {
        struct tmk_segment_block *next = segment->blocks->next;
        tmk_slabs_drop(&s->slabs, segment->blocks);
        segment->blocks = next;
    }
    free(segment->columns);
    segment->columns = NULL;
    segment->held = segment->constants = 0;
}

/* ---- which to forget ---- */

static void take_off_list(struct tmk_store *s, struct tmk_segment *segment)
{
    if (segment->before)
        segment->before->after = segment->after;
    else
        s->left_first = segment->after;
    if (segment->after)
        segment->after->before = segment->before;
    else
        s->left_last = segment->before;
    segment->before = segment->after = NULL;
}

static void put_on_list(struct tmk_store *s, struct tmk_segment *segment)
{
    segment->before = s->left_last;
    if (s->left_last)
        s->left_last->after = segment;
    else
        s->left_first = segment;
    s->left_last = segment;
}

static void keep_store_to_limit(struct tmk_store *s)
{
    while (s->left_first && s->slabs.n_bytes > s->limit_bytes) {
        struct tmk_segment *oldest = s->left_first;
        take_off_list(s, oldest);
        forget_segment_columns(s, oldest);
    }
}

void tmk_store_fini(struct tmk_store *s)
{
    for (uint32_t i = 0; i < s->n_segments; i++)
        free(s->segments[i].columns);
    free(s->segments);
    tmk_slabs_fini(&s->slabs);
    tmk_rows_fini(&s->scratch);
    tmk_walk_fini(&s->walk);
    *s = (struct tmk_store){0};
}

/* ---- decoding ---- */

static int fill_segment(struct tmk_store *s, struct tmk_segment *segment, uint64_t wanted,
                        struct tmk_error *err)
{
    struct tmk_fill f = {.pool = s->pool,
                         .source = &s->sources[segment->source],
                         .chunk = segment->chunk,
                         .args = s->args,
                         .walk = &s->walk,
                         .rows = &s->scratch};
    if (f.source->stop && *f.source->stop)
        return tmk_fail(err, TMK_EIO, "interrupted");
    tmk_rows_begin(f.rows, wanted);
    int rc = s->def->fill(&f, err);
    if (rc == 0 && (f.rows->failed || s->pool->failed))
        rc = TMK_ENOMEM;
    if (rc < 0)
        return err && err->text[0] ? rc : tmk_fail(err, rc, "%s", tmk_result_text(rc));
    if (segment->counted && segment->n_rows != f.rows->n)
        return tmk_fail(err, TMK_EIO, "%s changed while it was read", f.source->p->file);
    segment->counted = true;
    segment->n_rows = f.rows->n;
    return 0;
}

static size_t cells_of(const struct tmk_rows *rows, uint32_t column)
{
    return rows->constants >> column & 1 ? 1 : (size_t)rows->n;
}

static size_t column_bytes(const struct tmk_rows *rows, uint32_t column)
{
    size_t bytes = cells_of(rows, column) * tmk_cell_bytes(rows->specs[column].kind);
    return (bytes + 7) & ~(size_t)7;
}

/* Copy the scratch rows' columns to the segment. */
static int keep_scratch_rows(struct tmk_store *s, struct tmk_segment *segment)
{
    const struct tmk_rows *rows = &s->scratch;
    size_t n_bytes = 0;
    for (uint32_t c = 0; c < rows->n_columns; c++)
        n_bytes += rows->columns[c] ? column_bytes(rows, c) : 0;
    if (!segment->columns && !(segment->columns = calloc(rows->n_columns, sizeof(void *))))
        return TMK_ENOMEM;
    struct tmk_segment_block *block = tmk_slabs_take(&s->slabs, sizeof *block + n_bytes);
    if (!block)
        return TMK_ENOMEM;
    block->next = segment->blocks;
    segment->blocks = block;
    uint8_t *at = (uint8_t *)block->bytes;
    for (uint32_t c = 0; c < rows->n_columns; c++) {
        if (!rows->columns[c])
            continue;
        memcpy(at, rows->columns[c], cells_of(rows, c) * tmk_cell_bytes(rows->specs[c].kind));
        segment->columns[c] = at;
        at += column_bytes(rows, c);
    }
    segment->held |= rows->wanted;
    segment->constants |= rows->constants;
    return 0;
}

int tmk_store_pin(struct tmk_store *s, struct tmk_segment *segment, uint64_t wanted,
                  struct tmk_error *err)
{
    uint64_t missing = wanted & ~segment->held;
    if (segment->held && segment->n_pins == 0)
        take_off_list(s, segment);
    segment->n_pins++;
    int rc = missing || !segment->counted ? fill_segment(s, segment, missing, err) : 0;
    if (rc == 0 && missing && keep_scratch_rows(s, segment) < 0)
        rc = tmk_fail(err, TMK_ENOMEM, "out of memory");
    if (rc < 0)
        tmk_store_unpin(s, segment);
    ASSERT_VALID(s);
    return rc;
}

void tmk_store_unpin(struct tmk_store *s, struct tmk_segment *segment)
{
    assert(segment->n_pins > 0);
    if (--segment->n_pins > 0 || !segment->held)
        return;
    put_on_list(s, segment);
    keep_store_to_limit(s);
    ASSERT_VALID(s);
    assert(!s->left_first || s->slabs.n_bytes <= s->limit_bytes);
}

static struct tmk_column_values cell_of(const struct tmk_store *s, uint32_t column,
                                        const void *data, bool constant)
{
    return (struct tmk_column_values){
        .data = data, .index_mask = constant ? 0 : SIZE_MAX, .kind = s->def->specs[column].kind};
}

void tmk_store_cells(const struct tmk_store *s, const struct tmk_segment *segment, uint64_t wanted,
                     struct tmk_column_values *cells)
{
    assert((wanted & ~segment->held) == 0);
    for (uint32_t c = 0; c < s->def->doc.n_columns; c++)
        if (wanted >> c & 1)
            cells[c] = cell_of(s, c, segment->columns[c], segment->constants >> c & 1);
}

int tmk_store_look(struct tmk_store *s, struct tmk_segment *segment, uint64_t wanted,
                   struct tmk_column_values *cells, uint64_t *ret_n_rows, struct tmk_error *err)
{
    if (segment->counted && (wanted & ~segment->held) == 0) {
        tmk_store_cells(s, segment, wanted, cells);
        *ret_n_rows = segment->n_rows;
        return 0;
    }
    int rc = fill_segment(s, segment, wanted, err);
    if (rc < 0)
        return rc;
    for (uint32_t c = 0; c < s->def->doc.n_columns; c++)
        if (wanted >> c & 1)
            cells[c] = cell_of(s, c, s->scratch.columns[c], s->scratch.constants >> c & 1);
    *ret_n_rows = segment->n_rows;
    ASSERT_VALID(s);
    return 0;
}

/* ---- bounds ---- */

enum tmk_overlap tmk_store_overlap(const struct tmk_store *s, const struct tmk_segment *segment,
                                   const struct tmk_bounds *bounds)
{
    if (bounds->column < 0)
        return TMK_INSIDE;
    if (bounds->low > bounds->high)
        return TMK_OUTSIDE;
    if (s->def->scope != TMK_SCOPE_CHUNK)
        return TMK_ACROSS;
    const struct tmk_source *source = &s->sources[segment->source];
    const struct tmk_chunk_header *h = source->chunks[segment->chunk].header;
    bool by_step = s->def->specs[bounds->column].flags & TMK_ORDER_STEP;
    int64_t first = by_step ? h->first_step : tmk_source_time(source, h->start_ns);
    int64_t last = by_step ? h->last_step : tmk_source_time(source, h->end_ns);
    if (last < bounds->low || first > bounds->high)
        return TMK_OUTSIDE;
    return first >= bounds->low && last <= bounds->high ? TMK_INSIDE : TMK_ACROSS;
}

/* The first row with a value that is not below `value`. */
static uint64_t lower_row(const int64_t *values, uint64_t n, int64_t value)
{
    uint64_t low = 0;
    while (low < n) {
        uint64_t middle = low + (n - low) / 2;
        if (values[middle] < value)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

void tmk_bounds_rows(const struct tmk_bounds *bounds, const struct tmk_column_values *cell,
                     uint64_t n_rows, uint64_t *ret_begin, uint64_t *ret_end)
{
    const int64_t *values = cell->data;
    if (cell->index_mask == 0) { /* one value for all */
        bool in = n_rows && values[0] >= bounds->low && values[0] <= bounds->high;
        *ret_begin = 0;
        *ret_end = in ? n_rows : 0;
        return;
    }
    *ret_begin = lower_row(values, n_rows, bounds->low);
    *ret_end = bounds->high == INT64_MAX ? n_rows : lower_row(values, n_rows, bounds->high + 1);
}
