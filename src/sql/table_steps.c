/* SPDX-License-Identifier: MIT */
/* sql/table_steps.c - the table steps: the per-step history, a row for each training step and
 * device.
 *
 * It is exact even where the detail was given up. The time before the first step is a row without
 * a step number. */
#include <stdlib.h>

#include "base/error.h"
#include "kit/grow.h"
#include "model/run.h"
#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/source.h"
#include "sql/table_doc.h"
#include "tidemark/tidemark.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"

#define COLUMNS(X)                                                                                 \
    X(rank, INT, TMK_FEW, "rank of the process")                                                   \
    X(step, INT, TMK_PLAIN, "training step; NULL: before the first")                               \
    X(start_ns, INT, TMK_PLAIN, "when it began, ns since the run's start")                         \
    X(end_ns, INT, TMK_PLAIN, "when it ended, or the last event of it")                            \
    X(peak_allocated, INT, TMK_PLAIN, "most bytes allocated during it")                            \
    X(peak_reserved, INT, TMK_PLAIN, "most bytes reserved, blocks and cache; NULL: not known")     \
    X(allocations, INT, TMK_PLAIN, "blocks made in it")                                            \
    X(bytes, INT, TMK_PLAIN, "bytes of these blocks")                                              \
    X(device, TEXT, TMK_FEW, "cpu, cuda:0 and so on")                                              \
    X(pid, INT, TMK_FEW, "process")                                                                \
    X(frees, INT, TMK_PLAIN, "frees in it")                                                        \
    X(freed_bytes, INT, TMK_PLAIN, "bytes of the blocks freed")                                    \
    X(end_allocated, INT, TMK_PLAIN, "bytes allocated at its end")                                 \
    X(peak_ns, INT, TMK_PLAIN, "when the peak was reached")                                        \
    X(finished, INT, TMK_PLAIN, "0: the trace ends in this step")                                  \
    X(end_reserved, INT, TMK_PLAIN, "bytes reserved at its end; NULL: not known")                  \
    X(micro_steps, INT, TMK_PLAIN, "backward passes in it; NULL: no longer in the trace")

enum { COLUMNS(TMK_COLUMN_NUMBER) N_COLUMNS };
static const struct tmk_sql_column columns[] = {COLUMNS(TMK_COLUMN_DOC)};
static const struct tmk_column_spec specs[] = {COLUMNS(TMK_COLUMN_SPEC)};

/* ---- micro steps ---- */

/* A backward pass begins when the first of the threads that work on it opens a stage "backward". */
struct passes {
    uint64_t start_ns; /* of the step */
    int64_t step;
    int64_t n;
};

struct passes_sweep {
    struct passes *steps; /* in order of time */
    uint64_t n, room;
    bool failed;
};

static void begin_step_passes(struct passes_sweep *w, uint64_t start_ns, int64_t step,
                              int64_t n_passes)
{
    if (TMK_GROW(w->steps, w->n + 1, w->room) < 0)
        w->failed = true;
    else
        w->steps[w->n++] = (struct passes){.start_ns = start_ns, .step = step, .n = n_passes};
}

static void on_step_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                          struct tmk_block *b)
{
    (void)b;
    struct passes_sweep *w = arg;
    const struct tmk_state *s = &rp->state;
    if (ev->kind != TMK_KIND_STEP && ev->kind != TMK_KIND_PUSH)
        return;
    if (ev->kind == TMK_KIND_STEP) {
        begin_step_passes(w, s->step_start_ns, s->step, 0);
        return;
    }
    uint32_t context = tmk_state_thread_context(s, ev->thread);
    bool is_backward =
        ev->range_kind == TIDEMARK_STAGE && s->contexts[context].stage_kind == TMK_STAGE_BACKWARD;
    if (is_backward && s->n_backward == 1 && w->n > 0 && w->steps[w->n - 1].n != TMK_NULL_INT)
        w->steps[w->n - 1].n++;
}

/* If the detail begins in a step, or a gap lies in it, not everything is known of it. */
static void on_steps_restored(void *arg, const struct tmk_replay *rp)
{
    struct passes_sweep *w = arg;
    if (w->n > 0)
        w->steps[w->n - 1].n = TMK_NULL_INT;
    begin_step_passes(w, rp->state.step_start_ns, rp->state.step, TMK_NULL_INT);
}

static int64_t passes_of(const struct passes_sweep *w, const struct tmk_step_row *row)
{
    uint64_t low = 0, high = w->n;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (w->steps[middle].start_ns < row->start_ns)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < w->n && w->steps[low].start_ns == row->start_ns; low++)
        if (w->steps[low].step == row->step)
            return w->steps[low].n;
    return TMK_NULL_INT;
}

/* ---- rows ---- */

static void add_step_cells(struct tmk_fill *f, const struct passes_sweep *w,
                           const struct tmk_step_row *step)
{
    struct tmk_rows *rows = f->rows;
    uint64_t row = tmk_rows_add(rows);
    tmk_rows_int(rows, COL_step, row, step->step);
    tmk_rows_int(rows, COL_start_ns, row, tmk_source_time(f->source, step->start_ns));
    tmk_rows_int(rows, COL_end_ns, row, tmk_source_time(f->source, step->end_ns));
    tmk_rows_u64(rows, COL_peak_allocated, row, step->peak_bytes);
    tmk_rows_u64(rows, COL_allocations, row, step->n_allocs);
    tmk_rows_u64(rows, COL_bytes, row, step->alloc_bytes);
    tmk_rows_text(rows, COL_device, row, tmk_source_device(f->source, step->device));
    tmk_rows_u64(rows, COL_frees, row, step->n_frees);
    tmk_rows_u64(rows, COL_freed_bytes, row, step->free_bytes);
    tmk_rows_u64(rows, COL_end_allocated, row, step->end_bytes);
    tmk_rows_int(rows, COL_peak_ns, row, tmk_source_time(f->source, step->peak_ns));
    tmk_rows_int(rows, COL_finished, row, !step->open);
    tmk_rows_int(rows, COL_micro_steps, row, passes_of(w, step));
    if (!step->has_reserved)
        return;
    tmk_rows_u64(rows, COL_peak_reserved, row, step->peak_reserved_bytes);
    tmk_rows_u64(rows, COL_end_reserved, row, step->end_reserved_bytes);
}

static int fill_steps(struct tmk_fill *f, struct tmk_error *err)
{
    struct tmk_process *p = f->source->p;
    struct passes_sweep w = {0};
    struct tmk_visitor visitor = {.arg = &w, .event = on_step_event, .restored = on_steps_restored};
    int rc = 0;
    tmk_rows_constant_int(f->rows, COL_rank, tmk_source_rank(f->source));
    tmk_rows_constant_int(f->rows, COL_pid, tmk_source_pid(f->source));
    if (tmk_rows_want(f->rows, COL_micro_steps)) { /* the rest is in the history */
        begin_step_passes(&w, 0, TMK_NO_STEP, 0);
        rc = tmk_process_sweep(p, &visitor, 1, NULL, err);
    }
    for (uint64_t i = 0; rc == 0 && i < tmk_reader_n_step_rows(p->reader); i++)
        add_step_cells(f, &w, tmk_reader_step_row(p->reader, i));
    free(w.steps);
    return rc == 0 && w.failed ? TMK_ENOMEM : rc;
}

const struct tmk_vtab_def tmk_vtab_steps = {
    .doc = {.name = "steps",
            .meaning = "history: each training step on each device",
            .columns = columns,
            .n_columns = N_COLUMNS,
            .example = "SELECT step, peak_allocated, end_allocated FROM steps ORDER BY step",
            .more = {"SELECT step, end_allocated - lag(end_allocated) OVER (ORDER BY step) AS "
                     "grown FROM steps ORDER BY step",
                     "SELECT rank, max(end_ns - start_ns) / 1e9 AS slowest_s FROM steps WHERE "
                     "finished GROUP BY rank"}},
    .name = "steps",
    .specs = specs,
    .scope = TMK_SCOPE_PROCESS,
    .fill = fill_steps,
};
