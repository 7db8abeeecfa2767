/* SPDX-License-Identifier: MIT */
/* sql/table_accounting.c - the table accounting: what a device's memory is used for, part by
 * part. */
#include "kit/amount.h"
#include "model/run.h"
#include "passes/accounting.h"
#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/source.h"
#include "sql/table_doc.h"
#include "trace/replay.h"

#define COLUMNS(X)                                                                                 \
    X(pid, INT, TMK_FEW, "process")                                                                \
    X(rank, INT, TMK_FEW, "its rank")                                                              \
    X(device, TEXT, TMK_FEW, "cuda:0 and so on")                                                   \
    X(moment, TEXT, TMK_FEW, "peak: when the process had most of it; last: the last look")         \
    X(time_ns, INT, TMK_PLAIN, "when that was, ns since the run's start")                          \
    X(step, INT, TMK_FEW, "training step then; NULL: before the first")                            \
    X(part, TEXT, TMK_FEW, "total, used; segments, context, others, unexplained; blocks, cached")  \
    X(inside, TEXT, TMK_FEW, "what it is a part of: total, used, segments; NULL: the whole")       \
    X(owner, TEXT, TMK_FEW, "of segments: torch, nccl, user and so on; else NULL")                 \
    X(bytes, INT, TMK_PLAIN, "NULL: not known")                                                    \
    X(segments, INT, TMK_PLAIN, "how many; of segments only")

enum { COLUMNS(TMK_COLUMN_NUMBER) N_COLUMNS };
static const struct tmk_sql_column columns[] = {COLUMNS(TMK_COLUMN_DOC)};
static const struct tmk_column_spec specs[] = {COLUMNS(TMK_COLUMN_SPEC)};

static uint64_t add_accounting_row(struct tmk_fill *f, const struct tmk_device_account *a,
                                   const char *part, const char *inside, uint64_t bytes)
{
    uint64_t row = tmk_rows_add(f->rows);
    tmk_rows_text(f->rows, COL_device, row, tmk_source_device(f->source, a->device));
    tmk_fill_text(f, COL_moment, row, a->is_peak ? "peak" : "last");
    tmk_rows_int(f->rows, COL_time_ns, row, tmk_source_time(f->source, a->time_ns));
    tmk_rows_int(f->rows, COL_step, row, a->step);
    tmk_fill_text(f, COL_part, row, part);
    tmk_fill_text(f, COL_inside, row, inside);
    if (bytes != TMK_BYTES_UNKNOWN)
        tmk_rows_u64(f->rows, COL_bytes, row, bytes);
    return row;
}

static void add_account_rows(struct tmk_fill *f, const struct tmk_device_account *a)
{
    add_accounting_row(f, a, "total", NULL, a->total_bytes);
    add_accounting_row(f, a, "used", "total", a->used_bytes);
    for (uint64_t i = 0; i < a->n_parts; i++) {
        uint64_t row = add_accounting_row(f, a, "segments", "used", a->parts[i].bytes);
        tmk_fill_text(f, COL_owner, row, a->parts[i].owner);
        tmk_rows_u64(f->rows, COL_segments, row, a->parts[i].n_segments);
    }
    add_accounting_row(f, a, "context", "used", a->context_bytes);
    add_accounting_row(f, a, "others", "used", a->others_bytes);
    add_accounting_row(f, a, "unexplained", "used", a->unexplained_bytes);
    if (!a->has_reserved)
        return;
    uint64_t cached =
        a->reserved_bytes > a->allocated_bytes ? a->reserved_bytes - a->allocated_bytes : 0;
    add_accounting_row(f, a, "blocks", "segments", a->allocated_bytes);
    add_accounting_row(f, a, "cached", "segments", cached);
}

static int fill_accounting(struct tmk_fill *f, struct tmk_error *err)
{
    struct tmk_accounting *a = NULL;
    struct tmk_replay rp;
    tmk_rows_constant_int(f->rows, COL_pid, tmk_source_pid(f->source));
    tmk_rows_constant_int(f->rows, COL_rank, tmk_source_rank(f->source));
    int rc = tmk_accounting_open(f->source->p, &a);
    if (rc < 0)
        return rc;
    struct tmk_visitor visitor = tmk_accounting_visitor(a);
    rc = tmk_process_sweep(f->source->p, &visitor, 1, &rp, err);
    if (rc == 0) {
        rc = tmk_accounting_finish(a, &rp, err);
        tmk_replay_fini(&rp);
    }
    for (uint64_t i = 0; rc == 0 && i < tmk_accounting_n(a); i++)
        add_account_rows(f, tmk_accounting_get(a, i));
    tmk_accounting_close(a);
    return rc;
}

const struct tmk_vtab_def tmk_vtab_accounting = {
    .doc = {.name = "accounting",
            .meaning = "where a device's memory is, part by part",
            .columns = columns,
            .n_columns = N_COLUMNS,
            .example = "SELECT device, part, owner, bytes FROM accounting WHERE moment = 'peak'",
            .more = {"SELECT owner, sum(bytes) AS bytes FROM accounting WHERE part = 'segments' "
                     "AND moment = 'peak' GROUP BY owner ORDER BY bytes DESC",
                     "SELECT device, sum(bytes) AS bytes FROM accounting WHERE inside = 'used' AND "
                     "moment = 'last' GROUP BY device"}},
    .name = "accounting",
    .specs = specs,
    .scope = TMK_SCOPE_PROCESS,
    .fill = fill_accounting,
};
