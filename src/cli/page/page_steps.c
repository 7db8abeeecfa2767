/* SPDX-License-Identifier: MIT */
/* cli/page/page_steps.c - the page's history of steps, and the processes of the run side by side.
 * Both come from the history that every trace has in full; nothing is swept. */
#include <stdlib.h>

#include "cli/answers/report_answer.h"
#include "cli/output/xalloc.h"
#include "cli/page/page_columns.h"
#include "cli/page/page_parts.h"
#include "kit/tree.h"
#include "model/run.h"
#include "passes/steps.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/state.h"

enum { CURVE_POINTS = 512 };

static void put_step_times(struct tmk_page_columns *c, const struct tmk_step_row *const *rows,
                           uint64_t n)
{
    tmk_page_column(c, TMK_PAGE_DELTA, "steps.step");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put(c, (uint64_t)rows[i]->step);
    tmk_page_column(c, TMK_PAGE_DELTA, "steps.start");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put(c, rows[i]->start_ns);
    tmk_page_column(c, TMK_PAGE_DELTA, "steps.end");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put(c, rows[i]->end_ns);
}

static void put_step_bytes(struct tmk_page_columns *c, const struct tmk_step_row *const *rows,
                           uint64_t n)
{
    tmk_page_column(c, TMK_PAGE_DELTA, "steps.peak");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put(c, rows[i]->peak_bytes);
    tmk_page_column(c, TMK_PAGE_DELTA, "steps.end_bytes");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put(c, rows[i]->end_bytes);
    tmk_page_column(c, TMK_PAGE_DELTA, "steps.reserved");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put_if(c, rows[i]->has_reserved, rows[i]->peak_reserved_bytes);
    tmk_page_column(c, TMK_PAGE_DELTA, "steps.allocations");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put(c, rows[i]->n_allocs);
    tmk_page_column(c, TMK_PAGE_DELTA, "steps.bytes");
    for (uint64_t i = 0; i < n; i++)
        tmk_page_put(c, rows[i]->alloc_bytes);
}

void tmk_page_put_steps(struct tmk_page_parts *p)
{
    const struct tmk_steps *s = p->about->steps;
    uint64_t n = tmk_steps_n(s);
    uint64_t most = n < p->detail->n_steps ? n : p->detail->n_steps;
    uint64_t *picked = tmk_xcalloc(most + 1, sizeof *picked);
    const struct tmk_step_row **rows = tmk_xcalloc(most + 1, sizeof(const struct tmk_step_row *));
    uint64_t n_shown = tmk_steps_pick(s, most, picked);
    for (uint64_t i = 0; i < n_shown; i++)
        rows[i] = tmk_steps_get(s, picked[i]);
    tmk_tree_object(p->tree, "steps");
    tmk_tree_u64(p->tree, "all", n);
    tmk_tree_u64(p->tree, "shown", n_shown);
    tmk_tree_end(p->tree);
    put_step_times(p->columns, rows, n_shown);
    put_step_bytes(p->columns, rows, n_shown);
    free(rows);
    free(picked);
}

/* ---- processes ---- */

static uint64_t point_of(uint64_t ns, uint64_t end_ns)
{
    uint64_t i = (uint64_t)((unsigned __int128)ns * CURVE_POINTS / (end_ns + 1));
    return i < CURVE_POINTS ? i : CURVE_POINTS - 1;
}

/* The most that steps of the device needed, over the time of the run; +1, 0: none then. */
static void put_curve(struct tmk_page_parts *p, const struct tmk_process *process, uint16_t device,
                      uint32_t number, uint64_t end_ns)
{
    uint64_t most[CURVE_POINTS] = {0};
    for (uint64_t i = 0; i < tmk_reader_n_step_rows(process->reader); i++) {
        const struct tmk_step_row *row = tmk_reader_step_row(process->reader, i);
        if (row->device != device)
            continue;
        uint64_t first = point_of(row->start_ns + process->offset_ns, end_ns);
        uint64_t last = point_of(row->end_ns + process->offset_ns, end_ns);
        for (uint64_t k = first; k <= last; k++)
            if (row->peak_bytes + 1 > most[k])
                most[k] = row->peak_bytes + 1;
    }
    tmk_page_column(p->columns, TMK_PAGE_DELTA, "process.%u", number);
    for (uint64_t k = 0; k < CURVE_POINTS; k++)
        tmk_page_put(p->columns, most[k]);
}

static void put_process(struct tmk_page_parts *p, uint32_t i, uint64_t end_ns)
{
    const struct tmk_process *process = tmk_run_process(p->source->report->run, i);
    const struct tmk_step_row *peak = tmk_steps_peak(process, true, 0);
    char name[24];
    tmk_tree_object(p->tree, NULL);
    tmk_tree_text(p->tree, "file", process->file);
    tmk_tree_number(p->tree, "rank", process->rank);
    tmk_tree_u64_if(p->tree, "pid", process->pid > 0, process->pid);
    tmk_tree_label(p->tree, "host", process->host);
    tmk_tree_u64(p->tree, "start_ns", process->offset_ns);
    tmk_tree_u64(p->tree, "end_ns", process->offset_ns + process->end_ns);
    tmk_tree_u64_if(p->tree, "peak", peak != NULL, peak ? peak->peak_bytes : 0);
    tmk_tree_u64_if(p->tree, "peak_ns", peak != NULL,
                    peak ? process->offset_ns + peak->peak_ns : 0);
    tmk_tree_i64_if(p->tree, "peak_step", peak && peak->step != TMK_NO_STEP, peak ? peak->step : 0);
    tmk_tree_text(p->tree, "device", peak ? tmk_device_name(peak->device, name) : NULL);
    tmk_tree_bool(p->tree, "has_curve", peak && i < p->detail->n_ranks);
    tmk_tree_end(p->tree);
    if (peak && i < p->detail->n_ranks)
        put_curve(p, process, peak->device, i, end_ns);
}

void tmk_page_put_processes(struct tmk_page_parts *p)
{
    uint64_t end_ns = tmk_report_answer_end_ns(p->source->report);
    tmk_tree_list(p->tree, "processes");
    for (uint32_t i = 0; i < p->source->report->n; i++)
        put_process(p, i, end_ns);
    tmk_tree_end(p->tree);
}
