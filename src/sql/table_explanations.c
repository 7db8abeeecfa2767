/* SPDX-License-Identifier: MIT */
/* sql/table_explanations.c - the table explanations: why each OOM and each near miss came, with
 * the fix that comes first (passes/oom/explain.h). */
#include "kit/amount.h"
#include "passes/oom/explain.h"
#include "passes/oom/oom_case.h"
#include "passes/oom/oom_causes.h"
#include "passes/oom/oom_fixes.h"
#include "passes/oom/oom_scene.h"
#include "sql/rows.h"
#include "sql/source.h"
#include "sql/table_doc.h"

#include "sql/schema.h"

#define COLUMNS(X)                                                                                 \
    X(pid, INT, TMK_FEW, "process")                                                                \
    X(rank, INT, TMK_FEW, "its rank")                                                              \
    X(device, TEXT, TMK_FEW, "cpu, cuda:0 and so on")                                              \
    X(time_ns, INT, TMK_PLAIN, "when, ns since the run's start")                                   \
    X(step, INT, TMK_PLAIN, "training step; NULL: before the first")                               \
    X(oom, INT, TMK_FEW, "1: it ran out; 0: it came near")                                         \
    X(request, INT, TMK_PLAIN, "bytes requested; NULL: a GPU that is nearly full")                 \
    X(cause, TEXT, TMK_FEW, "demand, fragmentation, leak, outlier, other_process or settings")     \
    X(max_bytes, INT, TMK_PLAIN, "what the allocator may have, at least")                          \
    X(allocated, INT, TMK_PLAIN, "bytes allocated then")                                           \
    X(reserved, INT, TMK_PLAIN, "bytes that it had reserved; NULL: not known")                     \
    X(missing, INT, TMK_PLAIN, "bytes by which it did not fit, at most; NULL: a near miss")        \
    X(fix, TEXT, TMK_FEW, "what would have helped, the first; NULL: nothing is known")             \
    X(fix_saves, INT, TMK_PLAIN, "bytes that it saves; NULL: not computed")                        \
    X(fix_proof, TEXT, TMK_FEW, "how that is known: replay, measured or estimate")

enum { COLUMNS(TMK_COLUMN_NUMBER) N_COLUMNS };
static const struct tmk_sql_column columns[] = {COLUMNS(TMK_COLUMN_DOC)};
static const struct tmk_column_spec specs[] = {COLUMNS(TMK_COLUMN_SPEC)};

static void add_fix_cells(struct tmk_fill *f, uint64_t row, const struct tmk_fix *fix)
{
    tmk_fill_text(f, COL_fix, row, fix->text);
    if (fix->saves_bytes != TMK_BYTES_UNKNOWN)
        tmk_rows_u64(f->rows, COL_fix_saves, row, fix->saves_bytes);
    tmk_fill_text(f, COL_fix_proof, row, tmk_proof_name(fix->proof));
}

static void add_case_row(struct tmk_fill *f, const struct tmk_case *c)
{
    struct tmk_rows *rows = f->rows;
    const struct tmk_scene *s = &c->scene;
    bool is_oom = s->kind == TMK_SCENE_OOM;
    uint64_t row = tmk_rows_add(rows);
    tmk_rows_text(rows, COL_device, row, tmk_source_device(f->source, s->device));
    tmk_rows_int(rows, COL_time_ns, row, tmk_source_time(f->source, s->time_ns));
    tmk_rows_int(rows, COL_step, row, s->step);
    tmk_rows_int(rows, COL_oom, row, is_oom);
    if (s->kind != TMK_SCENE_FULL)
        tmk_rows_u64(rows, COL_request, row, s->request_bytes);
    tmk_fill_text(f, COL_cause, row, tmk_cause_name(c->verdict.rows[0].cause));
    if (c->verdict.limit_bytes > 0)
        tmk_rows_u64(rows, COL_max_bytes, row, c->verdict.limit_bytes);
    tmk_rows_u64(rows, COL_allocated, row, s->allocated_bytes);
    if (s->reserved_bytes != TMK_BYTES_UNKNOWN)
        tmk_rows_u64(rows, COL_reserved, row, s->reserved_bytes);
    if (is_oom)
        tmk_rows_u64(rows, COL_missing, row, c->verdict.missing_bytes);
    if (c->n_fixes > 0)
        add_fix_cells(f, row, &c->fixes[0]);
}

static int fill_explanations(struct tmk_fill *f, struct tmk_error *err)
{
    struct tmk_explanation *x = NULL;
    tmk_rows_constant_int(f->rows, COL_pid, tmk_source_pid(f->source));
    tmk_rows_constant_int(f->rows, COL_rank, tmk_source_rank(f->source));
    int rc = tmk_explanation_open(f->source->p, NULL, &x, err);
    for (uint64_t i = 0; rc == 0 && i < tmk_explanation_n(x); i++)
        add_case_row(f, tmk_explanation_get(x, i));
    tmk_explanation_close(x);
    return rc;
}

const struct tmk_vtab_def tmk_vtab_explanations = {
    .doc = {.name = "explanations",
            .meaning = "why it ran out of memory, or nearly did, and what would have helped",
            .columns = columns,
            .n_columns = N_COLUMNS,
            .example = "SELECT device, step, cause, request, missing, fix FROM explanations",
            .more = {"SELECT step, cause, fix, fix_saves, fix_proof FROM explanations WHERE oom",
                     "SELECT cause, count(*) AS times FROM explanations GROUP BY cause"}},
    .name = "explanations",
    .specs = specs,
    .scope = TMK_SCOPE_PROCESS,
    .fill = fill_explanations,
};
