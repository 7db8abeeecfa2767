/* SPDX-License-Identifier: MIT */
/* sql/table_leaks.c - the table leaks: the lines of code that keep more memory after each step
 * (passes/leak/leaks.h), however little they grow. */
#include "model/run.h"
#include "passes/leak/leak.h"
#include "passes/leak/leaks.h"
#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/source.h"
#include "sql/table_doc.h"
#include "trace/layout.h"
#include "trace/replay.h"

#define COLUMNS(X)                                                                                 \
    X(pid, INT, TMK_FEW, "process")                                                                \
    X(rank, INT, TMK_FEW, "its rank")                                                              \
    X(device, TEXT, TMK_FEW, "cpu, cuda:0 and so on")                                              \
    X(file, TEXT, TMK_FEW, "of the line that owns it")                                             \
    X(line, INT, TMK_PLAIN, "its number; NULL: not known")                                         \
    X(function, TEXT, TMK_FEW, "that the line is in")                                              \
    X(stack_id, INT, TMK_PLAIN, "who made what is kept: stacks.id")                                \
    X(category, TEXT, TMK_FEW, "that most of its bytes have")                                      \
    X(module, TEXT, TMK_FEW, "that more than half of its bytes were made in; NULL: several")       \
    X(stage, TEXT, TMK_FEW, "that most of its bytes were made in")                                 \
    X(bytes_per_step, INT, TMK_PLAIN, "that are added; NULL: the run has no steps")                \
    X(blocks_per_step, SECONDS, TMK_PLAIN, "likewise")                                             \
    X(bytes_per_second, INT, TMK_PLAIN, "likewise")                                                \
    X(first_step, INT, TMK_PLAIN, "that it was seen to grow in; NULL: the run has no steps")       \
    X(first_ns, INT, TMK_PLAIN, "end of that step, ns since the run's start")                      \
    X(growth, INT, TMK_PLAIN, "bytes by which it has grown")                                       \
    X(confidence, SECONDS, TMK_PLAIN, "probability that it will grow the next time: 0 to 1")       \
    X(kept_by, TEXT, TMK_FEW, "graph, container, hook, cycle, growing, loader; NULL: not known")   \
    X(held_by, TEXT, TMK_FEW, "what Python said has the tensors; NULL: not known")                 \
    X(advice, TEXT, TMK_FEW, "what to do")

enum { COLUMNS(TMK_COLUMN_NUMBER) N_COLUMNS };
static const struct tmk_sql_column columns[] = {COLUMNS(TMK_COLUMN_DOC)};
static const struct tmk_column_spec specs[] = {COLUMNS(TMK_COLUMN_SPEC)};

/* Fractions are kept as billionths, as seconds are. */
static int64_t billionths_of(double value)
{
    return value > -9e9 && value < 9e9 ? (int64_t)(value * 1e9 + (value < 0 ? -0.5 : 0.5))
                                       : TMK_NULL_INT;
}

static int64_t whole_number_of(double value)
{
    return value > -9e18 && value < 9e18 ? (int64_t)(value + (value < 0 ? -0.5 : 0.5))
                                         : TMK_NULL_INT;
}

static void add_leak_cells(struct tmk_fill *f, const struct tmk_leak *leak)
{
    struct tmk_rows *rows = f->rows;
    uint64_t row = tmk_rows_add(rows);
    tmk_rows_text(rows, COL_device, row, tmk_source_device(f->source, leak->device));
    if (leak->has_site) {
        tmk_fill_text(f, COL_file, row, leak->site.file);
        if (leak->site.line)
            tmk_rows_int(rows, COL_line, row, leak->site.line);
        tmk_fill_text(f, COL_function, row, leak->site.function);
    }
    tmk_rows_int(rows, COL_stack_id, row, tmk_source_id(f->source, leak->stack));
    tmk_fill_text(f, COL_category, row, tmk_category_name(leak->category));
    tmk_fill_text(f, COL_module, row, leak->module);
    tmk_fill_text(f, COL_stage, row, leak->stage);
    if (leak->first_step != TMK_NO_STEP) {
        tmk_rows_int(rows, COL_bytes_per_step, row, whole_number_of(leak->bytes_per_step));
        tmk_rows_int(rows, COL_blocks_per_step, row, billionths_of(leak->blocks_per_step));
    }
    tmk_rows_int(rows, COL_bytes_per_second, row, whole_number_of(leak->bytes_per_second));
    tmk_rows_int(rows, COL_first_step, row, leak->first_step);
    tmk_rows_int(rows, COL_first_ns, row, tmk_source_time(f->source, leak->first_ns));
    tmk_rows_u64(rows, COL_growth, row, leak->bytes);
    tmk_rows_int(rows, COL_confidence, row, billionths_of(leak->confidence));
    tmk_fill_text(f, COL_kept_by, row, tmk_keeper_name(leak->keeper));
    tmk_fill_text(f, COL_held_by, row, leak->holder);
    tmk_fill_text(f, COL_advice, row, tmk_leak_advice(leak));
}

static int fill_leaks(struct tmk_fill *f, struct tmk_error *err)
{
    struct tmk_leakage *l = NULL;
    struct tmk_replay rp;
    tmk_rows_constant_int(f->rows, COL_pid, tmk_source_pid(f->source));
    tmk_rows_constant_int(f->rows, COL_rank, tmk_source_rank(f->source));
    int rc = tmk_leakage_open(f->source->p, 0, &l);
    if (rc < 0)
        return rc;
    struct tmk_visitor visitor = tmk_leakage_visitor(l);
    rc = tmk_process_sweep(f->source->p, &visitor, 1, &rp, err);
    if (rc == 0) {
        rc = tmk_leakage_finish(l, &rp, err);
        tmk_replay_fini(&rp);
    }
    for (uint64_t i = 0; rc == 0 && i < tmk_leakage_n(l); i++)
        add_leak_cells(f, tmk_leakage_get(l, i));
    tmk_leakage_close(l);
    return rc;
}

const struct tmk_vtab_def tmk_vtab_leaks = {
    .doc =
        {.name = "leaks",
         .meaning = "the lines of code that keep more with every step",
         .columns = columns,
         .n_columns = N_COLUMNS,
         .example = "SELECT file, line, bytes_per_step, confidence, kept_by FROM leaks",
         .more =
             {"SELECT text FROM stacks WHERE id = (SELECT stack_id FROM leaks ORDER BY "
              "bytes_per_step DESC LIMIT 1)",
              "SELECT count(*) AS leaks, sum(growth) AS bytes FROM leaks WHERE confidence > 0.9"}},
    .name = "leaks",
    .specs = specs,
    .scope = TMK_SCOPE_PROCESS,
    .fill = fill_leaks,
};
