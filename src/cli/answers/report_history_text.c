/* SPDX-License-Identifier: MIT */
/* cli/answers/report_history_text.c - the report's sections on the course of the run: memory over
 * time, steps, the lines that allocate most, what is alive at the end, marks. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "cli/answers/health.h"
#include "cli/answers/process_answer.h"
#include "cli/answers/report_answer.h"
#include "cli/output/chart.h"
#include "cli/output/sheet.h"
#include "cli/output/xalloc.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/table.h"
#include "model/run.h"
#include "passes/leak/leaks.h"
#include "passes/marks.h"
#include "passes/quality.h"
#include "passes/sites.h"
#include "passes/steps.h"
#include "passes/timeline.h"
#include "trace/layout.h"
#include "trace/state.h"

enum { MAX_SITES = 10, MAX_STEPS = 10, MAX_MARKS = 8, MAX_LEFT = 5 };

void tmk_report_timeline_text(const struct tmk_process_answer *f, struct tmk_sheet *sheet)
{
    const struct tmk_timeline_part *parts = tmk_process_answer_parts(f);
    uint32_t n = tmk_timeline_n_parts(f->timeline);
    if (!parts)
        return;
    char device[24];
    char *title = tmk_xformat(_("MEMORY OVER TIME (%s, most in each column)"),
                              tmk_device_name(f->device, device));
    uint64_t values[TMK_CHART_MOST];
    for (uint32_t i = 0; i < n && i < TMK_CHART_MOST; i++)
        values[i] = tmk_process_answer_part_max(f, i);
    tmk_sheet_heading(sheet, title);
    tmk_sheet_chart(sheet, values, n, tmk_process_answer_run_ns(f, 0),
                    tmk_process_answer_run_ns(f, f->p->end_ns));
    free(title);
}

static void write_trend(const struct tmk_process_answer *f, struct tmk_sheet *sheet)
{
    char *text = tmk_steps_text(f, true);
    tmk_sheet_text(sheet, "%s%s.", text,
                   tmk_leakage_n(f->leakage) > 0 ? _(": see LEAKS, above") : "");
    free(text);
}

static void add_report_step_cells(struct tmk_table *t, const struct tmk_step_row *row)
{
    tmk_table_cellf(t, "%" PRId64 "%s", row->step, row->open ? _(" (last)") : "");
    tmk_table_time(t, row->end_ns - row->start_ns);
    tmk_table_size(t, row->peak_bytes);
    tmk_table_size(t, row->end_bytes);
    tmk_table_count(t, row->n_allocs);
    tmk_table_count(t, row->n_frees);
    tmk_table_size(t, row->alloc_bytes);
}

void tmk_report_steps_text(const struct tmk_process_answer *f, struct tmk_sheet *sheet)
{
    static const struct tmk_column columns[] = {
        {"step", TMK_LEFT, TMK_FIXED},         {"took", TMK_RIGHT, TMK_FIXED},
        {"peak", TMK_RIGHT, TMK_FIXED},        {"kept", TMK_RIGHT, TMK_FIXED},
        {"allocations", TMK_RIGHT, TMK_FIXED}, {"frees", TMK_RIGHT, TMK_FIXED},
        {"allocated", TMK_RIGHT, TMK_FIXED},
    };
    if (tmk_steps_n(f->steps) == 0)
        return;
    struct tmk_steps_digest digest = tmk_steps_digest(f->steps);
    uint64_t picked[MAX_STEPS];
    uint64_t n = tmk_steps_pick(f->steps, MAX_STEPS, picked);
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    for (uint64_t i = 0; i < n; i++)
        add_report_step_cells(t, tmk_steps_get(f->steps, picked[i]));
    tmk_sheet_heading(sheet, "STEPS");
    write_trend(f, sheet);
    if (n < digest.n_steps)
        tmk_sheet_text(sheet, "The first, the last and those with the largest peaks:");
    tmk_sheet_table(sheet, t);
}

void tmk_report_heading_since(const struct tmk_process_answer *f, struct tmk_sheet *sheet,
                              const char *text, const char *whole)
{
    char time[TMK_AMOUNT_BYTES];
    char *title =
        f->quality.n_given_up
            ? tmk_xformat(
                  _("%s (since %s; what is older was given up)"), text,
                  tmk_time_text(tmk_process_answer_run_ns(f, f->quality.detail_from_ns), time))
            : tmk_xformat("%s%s", text, whole);
    tmk_sheet_heading(sheet, title);
    free(title);
}

/* ---- lines of code ---- */

static void add_site_row(struct tmk_table *t, const struct tmk_site_total *s)
{
    char text[TMK_AMOUNT_BYTES];
    char site[TMK_FRAME_TEXT_BYTES];
    tmk_table_cell(t, s->is_known ? tmk_frame_text(&s->site, true, site) : "-");
    tmk_table_count(t, s->n_allocs);
    tmk_table_size(t, s->bytes);
    tmk_table_cell(t, s->live_blocks ? tmk_count_text(s->live_blocks, text) : NULL);
    tmk_table_size(t, s->live_blocks ? s->live_bytes : TMK_BYTES_UNKNOWN);
}

static struct tmk_table *open_site_table(void)
{
    static const struct tmk_column columns[] = {
        {"your line", TMK_LEFT, TMK_SHRINK}, {"count", TMK_RIGHT, TMK_FIXED},
        {"allocated", TMK_RIGHT, TMK_FIXED}, {"left", TMK_RIGHT, TMK_FIXED},
        {"size left", TMK_RIGHT, TMK_FIXED},
    };
    return tmk_table_open(columns, TMK_N(columns));
}

void tmk_report_sites_text(const struct tmk_process_answer *f, struct tmk_sheet *sheet)
{
    uint64_t n = tmk_sites_n(f->sites);
    if (n == 0)
        return;
    struct tmk_table *t = open_site_table();
    for (uint64_t i = 0; i < n && i < MAX_SITES; i++)
        add_site_row(t, tmk_sites_get(f->sites, i));
    tmk_report_heading_since(f, sheet, _("LINES THAT ALLOCATE MOST"), _(" (over the whole run)"));
    tmk_sheet_table(sheet, t);
    if (n > MAX_SITES)
        tmk_sheet_text(sheet, "%" PRIu64 " more line%s; --format json has a hundred", n - MAX_SITES,
                       n - MAX_SITES == 1 ? "" : "s");
}

void tmk_report_alive_text(const struct tmk_process_answer *f, struct tmk_sheet *sheet)
{
    uint64_t top[MAX_LEFT];
    char blocks[TMK_AMOUNT_BYTES], size[TMK_AMOUNT_BYTES];
    uint64_t n = tmk_sites_top_live(f->sites, MAX_LEFT, top);
    tmk_sheet_heading(sheet, "STILL ALIVE AT THE END");
    if (f->n_live == 0) {
        tmk_sheet_text(sheet, "Nothing: every block was freed.");
        return;
    }
    tmk_sheet_text(sheet,
                   "%s block%s, %s. Most were allocated at:", tmk_count_text(f->n_live, blocks),
                   f->n_live == 1 ? "" : "s", tmk_size_text(f->live_bytes, size));
    struct tmk_table *t = open_site_table();
    for (uint64_t i = 0; i < n; i++)
        add_site_row(t, tmk_sites_get(f->sites, top[i]));
    tmk_sheet_table(sheet, t);
}

void tmk_report_marks_text(const struct tmk_process_answer *f, struct tmk_sheet *sheet)
{
    static const struct tmk_column columns[] = {
        {"after", TMK_RIGHT, TMK_FIXED},
        {"step", TMK_RIGHT, TMK_FIXED},
        {"mark", TMK_LEFT, TMK_FIXED},
        {"what the program said", TMK_LEFT, TMK_SHRINK},
    };
    uint64_t n = tmk_marks_n(f->marks);
    if (n == 0)
        return;
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    for (uint64_t i = 0; i < n && i < MAX_MARKS; i++) {
        const struct tmk_mark *m = tmk_marks_get(f->marks, i);
        tmk_table_time(t, tmk_process_answer_run_ns(f, m->time_ns));
        if (m->step == TMK_NO_STEP)
            tmk_table_cell(t, NULL);
        else
            tmk_table_cellf(t, "%" PRId64, m->step);
        tmk_table_cell(t, m->name);
        tmk_table_cell(t, m->text);
    }
    tmk_report_heading_since(f, sheet, _("MARKS"), "");
    tmk_sheet_table(sheet, t);
    if (n > MAX_MARKS)
        tmk_sheet_text(sheet, "%" PRIu64 " more", n - MAX_MARKS);
}
