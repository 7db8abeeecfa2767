/* SPDX-License-Identifier: MIT */
/* sql/table_timeline.c - the table timeline(n): allocated bytes of each device in n equal parts
 * of each process's life; without n in 100. */
#include "model/run.h"
#include "passes/timeline.h"
#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/source.h"
#include "sql/table_doc.h"
#include "trace/replay.h"

enum { DEFAULT_PARTS = 100, MAX_PARTS = 1000000 };

#define COLUMNS(X)                                                                                 \
    X(pid, INT, TMK_FEW, "process")                                                                \
    X(rank, INT, TMK_FEW, "its rank")                                                              \
    X(device, TEXT, TMK_FEW, "cpu, cuda:0 and so on")                                              \
    X(part, INT, TMK_PLAIN, "number of the part, from 0")                                          \
    X(start_ns, INT, TMK_PLAIN, "its begin, ns since the run's start")                             \
    X(end_ns, INT, TMK_PLAIN, "its end")                                                           \
    X(max_allocated, INT, TMK_PLAIN, "most bytes in it; NULL: its detail was given up")            \
    X(min_allocated, INT, TMK_PLAIN, "fewest bytes in it")                                         \
    X(end_allocated, INT, TMK_PLAIN, "bytes at its end")                                           \
    X(step, INT, TMK_PLAIN, "training step at its end")                                            \
    X(max_reserved, INT, TMK_PLAIN, "most bytes reserved in it; NULL: not known")                  \
    X(max_used, INT, TMK_PLAIN, "most bytes of the device used in it, by whomever; NULL: not known")

enum { COLUMNS(TMK_COLUMN_NUMBER) N_COLUMNS };
static const struct tmk_sql_column columns[] = {COLUMNS(TMK_COLUMN_DOC)};
static const struct tmk_column_spec specs[] = {COLUMNS(TMK_COLUMN_SPEC)};

static void add_part_row(struct tmk_fill *f, uint16_t device, uint32_t i,
                         const struct tmk_timeline_part *part, bool is_known)
{
    struct tmk_rows *rows = f->rows;
    uint64_t row = tmk_rows_add(rows);
    tmk_rows_text(rows, COL_device, row, tmk_source_device(f->source, device));
    tmk_rows_int(rows, COL_part, row, i);
    tmk_rows_int(rows, COL_start_ns, row, tmk_source_time(f->source, part->start_ns));
    tmk_rows_int(rows, COL_end_ns, row, tmk_source_time(f->source, part->end_ns));
    if (!is_known)
        return;
    tmk_rows_u64(rows, COL_max_allocated, row, part->max_bytes);
    tmk_rows_u64(rows, COL_min_allocated, row, part->min_bytes);
    tmk_rows_u64(rows, COL_end_allocated, row, part->last_bytes);
    tmk_rows_int(rows, COL_step, row, part->step);
    if (part->has_reserved)
        tmk_rows_u64(rows, COL_max_reserved, row, part->max_reserved_bytes);
    if (part->has_used)
        tmk_rows_u64(rows, COL_max_used, row, part->max_used_bytes);
}

static void add_timeline_parts(struct tmk_fill *f, const struct tmk_timeline *t)
{
    for (uint32_t d = 0; d < tmk_timeline_n_devices(t); d++) {
        const struct tmk_timeline_part *parts = tmk_timeline_parts(t, d);
        for (uint32_t i = 0; i < tmk_timeline_n_parts(t); i++)
            add_part_row(f, tmk_timeline_device(t, d), i, &parts[i],
                         parts[i].start_ns >= tmk_timeline_known_ns(t));
    }
}

static int fill_timeline(struct tmk_fill *f, struct tmk_error *err)
{
    struct tmk_process *p = f->source->p;
    int64_t n = f->args[0] < 1 ? 1 : f->args[0] > MAX_PARTS ? MAX_PARTS : f->args[0];
    struct tmk_timeline *t = NULL;
    tmk_rows_constant_int(f->rows, COL_pid, tmk_source_pid(f->source));
    tmk_rows_constant_int(f->rows, COL_rank, tmk_source_rank(f->source));
    int rc = tmk_timeline_open(0, p->end_ns, (uint32_t)n, &t);
    if (rc < 0)
        return rc;
    struct tmk_visitor visitor = tmk_timeline_visitor(t);
    rc = tmk_process_sweep(p, &visitor, 1, NULL, err);
    if (rc == 0)
        rc = tmk_timeline_finish(t);
    if (rc == 0)
        add_timeline_parts(f, t);
    tmk_timeline_close(t);
    return rc;
}

const struct tmk_vtab_def tmk_vtab_timeline = {
    .doc =
        {.name = "timeline(n)",
         .meaning = "allocated bytes over time, in n equal parts",
         .columns = columns,
         .n_columns = N_COLUMNS,
         .example = "SELECT start_ns, device, max_allocated FROM timeline(60)",
         .more = {"SELECT device, max(max_allocated) AS bytes FROM timeline(1000) GROUP BY device",
                  "SELECT rank, part, max_allocated - min_allocated AS swing FROM timeline(10) "
                  "ORDER BY swing DESC"}},
    .name = "timeline",
    .specs = specs,
    .scope = TMK_SCOPE_PROCESS,
    .n_args = 1,
    .arg_names = {"n"},
    .arg_defaults = {DEFAULT_PARTS},
    .fill = fill_timeline,
};
