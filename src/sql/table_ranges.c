/* SPDX-License-Identifier: MIT */
/* sql/table_ranges.c - the table ranges: every stage, module and other range, in order of
 * opening. */
#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"
#include "kit/grow.h"
#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/source.h"
#include "sql/table_doc.h"
#include "sql/textpool.h"
#include "sql/walk.h"
#include "tidemark/tidemark.h"
#include "trace/kinds.h"

#define COLUMNS(X)                                                                                 \
    X(pid, INT, TMK_FEW, "process")                                                                \
    X(rank, INT, TMK_FEW, "its rank")                                                              \
    X(thread, INT, TMK_FEW, "the system's number of the thread")                                   \
    X(kind, TEXT, TMK_FEW, "stage, module, user, or mode (no_grad, inference_mode)")               \
    X(name, TEXT, TMK_FEW, "name of the range")                                                    \
    X(start_ns, INT, TMK_PLAIN, "when it opened, ns since the run's start")                        \
    X(end_ns, INT, TMK_PLAIN, "when it closed; NULL: open to the end, or lost in a gap")           \
    X(depth, INT, TMK_PLAIN, "ranges around it")                                                   \
    X(step, INT, TMK_PLAIN, "training step it opened in; NULL: before the first")                  \
    X(stage, TEXT, TMK_FEW, "innermost stage, itself included")                                    \
    X(module, TEXT, TMK_FEW, "innermost module, itself included")

enum { COLUMNS(TMK_COLUMN_NUMBER) N_COLUMNS };
static const struct tmk_sql_column columns[] = {COLUMNS(TMK_COLUMN_DOC)};
static const struct tmk_column_spec specs[] = {COLUMNS(TMK_COLUMN_SPEC)};

static uint32_t range_kind_text(struct tmk_fill *f, uint8_t kind)
{
    static const char *const names[] = {[TMK_RANGE_GRAD_MODE] = "mode",
                                        [TIDEMARK_STAGE] = "stage",
                                        [TIDEMARK_MODULE] = "module",
                                        [TIDEMARK_USER] = "user"};
    return kind < TMK_N(names) ? tmk_textpool_put(f->pool, names[kind]) : 0;
}

static uint32_t string_text(struct tmk_fill *f, uint32_t string)
{
    return string ? tmk_source_text(f->source, string) : 0;
}

/* Add a row for the range at `depth` of a thread; the range notes its number, from 1. */
static void add_range_row(struct tmk_fill *f, const struct tmk_walk_thread *t, uint64_t depth,
                          bool has_step)
{
    struct tmk_rows *rows = f->rows;
    struct tmk_walk_range *r = &t->ranges[depth];
    uint64_t row = tmk_rows_add(rows);
    r->row = row + 1;
    tmk_rows_int(rows, COL_thread, row, tmk_source_thread(f->source, t->thread));
    if (tmk_rows_want(rows, COL_kind))
        tmk_rows_text(rows, COL_kind, row, range_kind_text(f, r->kind));
    tmk_rows_text(rows, COL_name, row, string_text(f, r->name));
    tmk_rows_int(rows, COL_start_ns, row, tmk_source_time(f->source, r->start_ns));
    tmk_rows_u64(rows, COL_depth, row, depth);
    if (has_step)
        tmk_rows_int(rows, COL_step, row, f->walk->step);
    tmk_rows_text(rows, COL_stage, row, string_text(f, r->stage_name));
    tmk_rows_text(rows, COL_module, row, string_text(f, r->module));
}

static void visit_range_event(struct tmk_fill *f)
{
    struct tmk_walk *w = f->walk;
    if (w->event.kind == TMK_KIND_PUSH && tmk_walk_top(w) && tmk_walk_top(w)->row == 0)
        add_range_row(f, w->thread, w->thread->n - 1, true);
    for (uint64_t i = 0; i < w->n_closed; i++)
        if (w->closed[i].row)
            tmk_rows_int(f->rows, COL_end_ns, w->closed[i].row - 1,
                         tmk_source_time(f->source, w->event.time_ns));
}

/* ---- over a gap ---- */

struct known_ranges { /* an open range that has a row */
    uint32_t thread;
    struct tmk_walk_range range;
};

struct knowns {
    struct known_ranges *list;
    uint64_t n, room;
};

/* Note the open ranges before a chunk that is not joined to the last one. */
static int note_open_ranges(const struct tmk_walk *w, struct knowns *k)
{
    k->n = 0;
    for (uint64_t t = 0; t < w->n_threads; t++) {
        for (uint64_t i = 0; i < w->threads[t].n; i++) {
            if (TMK_GROW(k->list, k->n + 1, k->room) < 0)
                return TMK_ENOMEM;
            k->list[k->n++] = (struct known_ranges){.thread = w->threads[t].thread,
                                                    .range = w->threads[t].ranges[i]};
        }
    }
    return 0;
}

static uint64_t known_row(const struct knowns *k, uint32_t thread, const struct tmk_walk_range *r)
{
    for (uint64_t i = 0; i < k->n; i++) {
        const struct tmk_walk_range *other = &k->list[i].range;
        if (k->list[i].thread == thread && other->start_ns == r->start_ns &&
            other->name == r->name && other->kind == r->kind)
            return other->row;
    }
    return 0;
}

/* Adds the ranges that are open after the chunk's restored state: those that were open before keep
 * their rows, others get one, in an unknown step. */
static void add_restored_ranges(struct tmk_fill *f, const struct knowns *k)
{
    const struct tmk_walk *w = f->walk;
    for (uint64_t t = 0; t < w->n_threads; t++) {
        for (uint64_t i = 0; i < w->threads[t].n; i++) {
            struct tmk_walk_range *r = &w->threads[t].ranges[i];
            if (r->row == 0)
                r->row = known_row(k, w->threads[t].thread, r);
            if (r->row == 0)
                add_range_row(f, &w->threads[t], i, false);
        }
    }
}

static int fill_chunk(struct tmk_fill *f, uint32_t i, struct knowns *k, struct tmk_error *err)
{
    k->n = 0;
    int rc = i > 0 && !tmk_walk_is_next(f->walk, f->source, i) ? note_open_ranges(f->walk, k) : 0;
    if (rc == 0)
        rc = tmk_walk_begin(f->walk, f->source, i, err);
    if (rc < 0)
        return rc;
    add_restored_ranges(f, k);
    while ((rc = tmk_walk_next(f->walk)) > 0)
        visit_range_event(f);
    return rc;
}

static int fill_ranges(struct tmk_fill *f, struct tmk_error *err)
{
    struct knowns k = {0};
    int rc = 0;
    tmk_rows_constant_int(f->rows, COL_pid, tmk_source_pid(f->source));
    tmk_rows_constant_int(f->rows, COL_rank, tmk_source_rank(f->source));
    for (uint32_t i = 0; rc == 0 && i < f->source->n_chunks; i++) {
        rc = fill_chunk(f, i, &k, err);
        rc = rc == TMK_EDAMAGED ? 0 : rc;
    }
    free(k.list);
    return rc;
}

const struct tmk_vtab_def tmk_vtab_ranges = {
    .doc = {.name = "ranges",
            .meaning = "every stage, module, grad mode and other range",
            .columns = columns,
            .n_columns = N_COLUMNS,
            .example =
                "SELECT kind, name, count(*), avg(end_ns - start_ns) FROM ranges GROUP BY 1, 2",
            .more = {"SELECT step, name, (end_ns - start_ns) / 1e6 AS ms FROM ranges WHERE kind = "
                     "'stage' ORDER BY start_ns LIMIT 20",
                     "SELECT kind, name, start_ns FROM ranges WHERE end_ns IS NULL"}},
    .name = "ranges",
    .specs = specs,
    .scope = TMK_SCOPE_PROCESS,
    .rows_per_event = 1,
    .fill = fill_ranges,
};
