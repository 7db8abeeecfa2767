/* SPDX-License-Identifier: MIT */
/* cli/answers/report_text.c - the report for people: the verdict, the next command, what fills the
 * memory, and the rest. A page by default; r->is_full has every section. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/answers/health.h"
#include "cli/answers/process_answer.h"
#include "cli/answers/ranks_answer.h"
#include "cli/answers/report_answer.h"
#include "cli/front/refused.h"
#include "cli/front/target.h"
#include "cli/output/losses.h"
#include "cli/output/sheet.h"
#include "cli/output/source_line.h"
#include "cli/output/xalloc.h"
#include "kit/amount.h"
#include "kit/arena.h"
#include "kit/language.h"
#include "kit/table.h"
#include "model/run.h"
#include "passes/quality.h"
#include "trace/reader.h"

/* ---- the verdict ---- */

static void write_verdict(const struct tmk_report_answer *r, struct tmk_sheet *sheet)
{
    char source[TMK_SOURCE_LINE_BYTES];
    const struct tmk_health *h = &r->health;
    const char *text = h->has_site ? tmk_source_line(h->p, &h->site, source) : NULL;
    tmk_sheet_verdict(sheet, tmk_health_role(h->kind), "%s.", h->text);
    if (text)
        tmk_sheet_code(sheet, text);
    tmk_sheet_command(sheet, _("next: "), h->next);
    if (!sheet->markdown)
        fputc('\n', sheet->out);
}

/* ---- header ---- */

static void write_pair(struct tmk_table *t, const char *name, const char *value)
{
    tmk_table_cell(t, name);
    tmk_table_cell(t, value);
}

static void write_report_header(const struct tmk_report_answer *r, struct tmk_sheet *sheet)
{
    static const struct tmk_column columns[] = {{NULL, TMK_LEFT, TMK_FIXED},
                                                {NULL, TMK_LEFT, TMK_SHRINK}};
    static const struct tmk_column titled[] = {{"about", TMK_LEFT, TMK_FIXED},
                                               {"", TMK_LEFT, TMK_SHRINK}};
    const struct tmk_process_answer *f = &r->about;
    char date[32], time[TMK_AMOUNT_BYTES], events[TMK_AMOUNT_BYTES], allocs[TMK_AMOUNT_BYTES];
    char frees[TMK_AMOUNT_BYTES];
    struct tmk_table *t = tmk_table_open(sheet->markdown ? titled : columns, 2);
    write_pair(t, _("program"), f->p->command[0] ? f->p->command : NULL);
    tmk_table_cell(t, _("process"));
    char *process = f->p->pid ? tmk_xformat(_("%" PRIu64 " on %s%s, "), f->p->pid,
                                            f->p->host[0] ? f->p->host : "-",
                                            f->p->live ? _(", still running") : "")
                              : tmk_xstrdup("");
    tmk_table_cellf(t, _("%sstarted %s UTC, recorded for %s"), process,
                    tmk_date_text(f->p->start_realtime_ns - f->p->offset_ns, date),
                    tmk_time_text(tmk_report_answer_end_ns(r), time));
    free(process);
    tmk_table_cell(t, _("recorded"));
    tmk_table_cellf(t, _("%s event%s: %s allocation%s, %s free%s"),
                    tmk_count_text(f->n_events, events), f->n_events == 1 ? "" : "s",
                    tmk_count_text(f->n_allocs, allocs), f->n_allocs == 1 ? "" : "s",
                    tmk_count_text(f->n_frees, frees), f->n_frees == 1 ? "" : "s");
    char *steps = tmk_steps_text(f, false);
    if (steps)
        write_pair(t, _("steps"), steps);
    free(steps);
    tmk_sheet_table(sheet, t);
}

static void write_processes(const struct tmk_report_answer *r, struct tmk_sheet *sheet)
{
    char label[40];
    struct tmk_arena words = {0};
    tmk_ranks_text(r->ranks, r->run, r->chosen, sheet);
    tmk_sheet_text(
        sheet, "* The rest of this page is about %s. Another: tidemark report %s --rank N",
        tmk_process_label(r->about.p, label), tmk_xshell_word(&words, tmk_run_path(r->run)));
    tmk_arena_fini(&words);
}

/* ---- quality ---- */

static void write_sentence(void *arg, const char *text)
{
    tmk_sheet_item(arg, text);
}

static void write_refused(void *arg, const char *text)
{
    char *sentence = tmk_xformat(_("Not recorded: %s."), text);
    tmk_sheet_item(arg, sentence);
    free(sentence);
}

/* Write what the processes have lost that this page is not about, and which processes were not
 * recorded. */
static unsigned write_other_losses(const struct tmk_report_answer *r, struct tmk_sheet *sheet)
{
    struct tmk_losses sum = {0};
    char text[TMK_LOSSES_TEXT_BYTES];
    for (uint32_t i = 0; i < r->n; i++) {
        struct tmk_quality q = tmk_quality_of_status(tmk_run_process(r->run, i));
        if (i != r->chosen)
            tmk_losses_add(&sum, &q);
    }
    if (sum.n_processes > 0) {
        char *sentence = tmk_xformat(_("There are losses %s."), tmk_losses_text(&sum, text));
        tmk_sheet_item(sheet, sentence);
        free(sentence);
    }
    return (sum.n_processes > 0) +
           (unsigned)tmk_refused_each(tmk_run_path(r->run), r->run, write_refused, sheet);
}

static void count_sentence(void *arg, const char *text)
{
    (void)arg;
    (void)text;
}

/* Returns whether all of the run is there, so that there is nothing to tell. */
static bool is_complete(const struct tmk_report_answer *r)
{
    const struct tmk_process_answer *f = &r->about;
    struct tmk_losses sum = {0};
    for (uint32_t i = 0; i < r->n; i++) {
        struct tmk_quality q = tmk_quality_of_status(tmk_run_process(r->run, i));
        if (i != r->chosen)
            tmk_losses_add(&sum, &q);
    }
    return tmk_process_answer_doubts(f, count_sentence, NULL) == 0 && sum.n_processes == 0 &&
           tmk_refused_each(tmk_run_path(r->run), r->run, count_sentence, NULL) == 0 &&
           !f->quality.merged && !f->quality.live;
}

static void write_quality(const struct tmk_report_answer *r, struct tmk_sheet *sheet)
{
    const struct tmk_process_answer *f = &r->about;
    tmk_sheet_heading(sheet, "HOW COMPLETE THIS IS");
    if (sheet->markdown)
        fputc('\n', sheet->out);
    unsigned n_doubts = tmk_process_answer_doubts(f, write_sentence, sheet);
    n_doubts += write_other_losses(r, sheet);
    if (n_doubts == 0)
        tmk_sheet_item(sheet, _("Everything is there: no event was dropped, none given up."));
    if (f->quality.merged)
        tmk_sheet_item(sheet,
                       _("The process was killed or left without clean-up; its last events were "
                         "found in memory and are included."));
    if (f->quality.live)
        tmk_sheet_item(sheet, _("The process is still running: this is how it stands now."));
    char size[TMK_AMOUNT_BYTES];
    uint64_t bytes = tmk_reader_file_bytes(f->p->reader);
    uint64_t n = f->n_events - f->quality.n_given_up;
    char *text = tmk_xformat(_("The trace has %s, %.1f bytes an event."),
                             tmk_size_text(bytes, size), n ? (double)bytes / (double)n : 0);
    tmk_sheet_item(sheet, text);
    free(text);
}

/* ---- the page ---- */

/* Write the sections that only the whole report has. */
static void write_all_the_rest(const struct tmk_report_answer *r, struct tmk_sheet *sheet)
{
    const struct tmk_process_answer *f = &r->about;
    tmk_report_device_text(f, sheet);
    tmk_report_frag_text(f, sheet);
    tmk_report_timeline_text(f, sheet);
    tmk_report_steps_text(f, sheet);
    tmk_report_forecast_text(f, sheet);
    tmk_report_sites_text(f, sheet);
    tmk_report_alive_text(f, sheet);
    tmk_report_marks_text(f, sheet);
    write_quality(r, sheet);
}

static void write_some_of_the_rest(const struct tmk_report_answer *r, struct tmk_sheet *sheet)
{
    const struct tmk_process_answer *f = &r->about;
    struct tmk_arena words = {0};
    char *command =
        tmk_xformat("tidemark report %s --full", tmk_xshell_word(&words, tmk_run_path(r->run)));
    if (!r->explanation)
        tmk_report_timeline_text(f, sheet);
    if (!f->has_peak)
        tmk_report_device_text(f, sheet);
    tmk_report_forecast_text(f, sheet);
    if (!is_complete(r))
        write_quality(r, sheet);
    if (!sheet->markdown)
        fputc('\n', sheet->out);
    tmk_sheet_command(sheet, _("everything: "), command);
    free(command);
    tmk_arena_fini(&words);
}

void tmk_report_text(const struct tmk_report_answer *r, struct tmk_sheet *sheet)
{
    const struct tmk_process_answer *f = &r->about;
    char *title = tmk_xformat("tidemark report: %s", tmk_run_path(r->run));
    tmk_sheet_title(sheet, title);
    free(title);
    write_verdict(r, sheet);
    write_report_header(r, sheet);
    if (r->ranks)
        write_processes(r, sheet);
    tmk_report_why_text(r, sheet);
    if (r->is_full)
        tmk_report_ooms_text(f, sheet);
    bool is_the_peak = tmk_report_oom_shares_text(f, r->is_full, sheet);
    if (r->is_full || !is_the_peak)
        tmk_report_peak_text(f, r->is_full, sheet);
    tmk_report_leak_text(f, sheet);
    if (r->is_full)
        write_all_the_rest(r, sheet);
    else
        write_some_of_the_rest(r, sheet);
}
