/* SPDX-License-Identifier: MIT */
/* cli/answers/report_text.c - the report for people, the most important sections first. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/answers/explain_answer.h"
#include "cli/answers/process_answer.h"
#include "cli/answers/ranks_answer.h"
#include "cli/answers/report_answer.h"
#include "cli/front/refused.h"
#include "cli/front/target.h"
#include "cli/output/chart.h"
#include "cli/output/losses.h"
#include "cli/output/say.h"
#include "cli/output/sheet.h"
#include "cli/output/xalloc.h"
#include "kit/amount.h"
#include "kit/arena.h"
#include "kit/table.h"
#include "model/run.h"
#include "passes/group.h"
#include "passes/leak/leak_words.h"
#include "passes/leak/leaks.h"
#include "passes/marks.h"
#include "passes/oom/explain.h"
#include "passes/oom/oom_case.h"
#include "passes/oom/oom_causes.h"
#include "passes/oom/ooms.h"
#include "passes/peak.h"
#include "passes/quality.h"
#include "passes/sites.h"
#include "passes/steps.h"
#include "passes/timeline.h"
#include "tidemark/tidemark.h"
#include "trace/defs.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/state.h"

enum {
    BAR_WIDTH = 16,
    MAX_ROWS = 8,
    MAX_SITES = 10,
    MAX_STEPS = 10,
    MAX_MARKS = 8,
    MAX_OOMS = 4,
    MAX_LEFT = 5,
    MAX_FIXES = 3,
};

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
    write_pair(t, "program", f->p->command[0] ? f->p->command : NULL);
    tmk_table_cell(t, "process");
    if (f->p->pid)
        tmk_table_cellf(t, "%" PRIu64 " on %s%s", f->p->pid, f->p->host[0] ? f->p->host : "?",
                        f->p->live ? ", still running" : "");
    else
        tmk_table_cell(t, NULL);
    tmk_table_cell(t, "started");
    tmk_table_cellf(t, "%s UTC, recorded for %s",
                    tmk_date_text(f->p->start_realtime_ns - f->p->offset_ns, date),
                    tmk_time_text(tmk_report_answer_end_ns(r), time));
    tmk_table_cell(t, "recorded");
    tmk_table_cellf(t, "%s events: %s allocations, %s frees", tmk_count_text(f->n_events, events),
                    tmk_count_text(f->n_allocs, allocs), tmk_count_text(f->n_frees, frees));
    tmk_sheet_table(sheet, t);
}

static void write_processes(const struct tmk_report_answer *r, struct tmk_sheet *sheet)
{
    char label[40];
    struct tmk_arena words = {0};
    tmk_ranks_text(r->ranks, r->run, r->chosen, sheet);
    tmk_sheet_text(
        sheet, "* the rest of this page is about %s. Another: tidemark report %s --rank N",
        tmk_process_label(r->about.p, label), tmk_xshell_word(&words, tmk_run_path(r->run)));
    tmk_arena_fini(&words);
}

/* ---- peak ---- */

static const char *const share_titles[] = {
    [TMK_BY_CATEGORY] = "by category                 ",
    [TMK_BY_MODULE] = "by module                   ",
    [TMK_BY_COMPONENT] = "by component                ",
    [TMK_BY_STAGE] = "by stage                    ",
    [TMK_BY_STEP] = "by step it was made in      ",
    [TMK_BY_STACK] = "by stack                    ",
    [TMK_BY_TENSOR] = "by name                     ",
    [TMK_BY_SITE] = "by line of code             ",
};

static void add_share_row(struct tmk_table *t, const char *key, uint64_t bytes, uint64_t whole,
                          uint64_t n_blocks)
{
    char percent[TMK_AMOUNT_BYTES], bar[3 * BAR_WIDTH + 4];
    tmk_table_cell(t, key);
    tmk_table_size(t, bytes);
    tmk_table_count(t, n_blocks);
    tmk_table_cell(t, tmk_percent_text(bytes, whole, percent));
    tmk_table_cell(t, tmk_bar(bytes, whole, BAR_WIDTH, bar));
}

/* Returns what a row is called. A line of code is called by its file without the folders, which are
 * long. */
static char *row_name(const struct tmk_process_answer *f, enum tmk_by by,
                      const struct tmk_peak_row *row)
{
    struct tmk_frame site;
    char text[TMK_FRAME_TEXT_BYTES];
    if (by == TMK_BY_SITE && tmk_stack_site(f->p, row->stack, &site))
        return tmk_xstrdup(tmk_frame_text(&site, true, text));
    const char *none = by == TMK_BY_STEP ? "(before the first)" : "(none)";
    return tmk_xstrdup(row->key ? row->key : none);
}

/* Write the largest rows, and the others as one. */
static void write_shares(struct tmk_sheet *sheet, const struct tmk_process_answer *f,
                         enum tmk_by by, const struct tmk_peak_row *rows, uint64_t n,
                         uint64_t whole)
{
    const struct tmk_column columns[] = {
        {share_titles[by], TMK_LEFT, TMK_SHRINK},
        {"size", TMK_RIGHT, TMK_FIXED},
        {"blocks", TMK_RIGHT, TMK_FIXED},
        {"share", TMK_RIGHT, TMK_FIXED},
        {"", TMK_LEFT, TMK_FIXED},
    };
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    uint64_t shown = n > MAX_ROWS ? MAX_ROWS - 1 : n;
    for (uint64_t i = 0; i < shown; i++) {
        char *name = row_name(f, by, &rows[i]);
        add_share_row(t, name, rows[i].bytes, whole, rows[i].n_blocks);
        free(name);
    }
    uint64_t bytes = 0, n_blocks = 0;
    for (uint64_t i = shown; i < n; i++) {
        bytes += rows[i].bytes;
        n_blocks += rows[i].n_blocks;
    }
    if (n > shown) {
        char *others = tmk_xformat("(%" PRIu64 " others)", n - shown);
        add_share_row(t, others, bytes, whole, n_blocks);
        free(others);
    }
    if (!sheet->markdown)
        fputc('\n', sheet->out);
    tmk_sheet_table(sheet, t);
}

static void write_peak_by(const struct tmk_process_answer *f, struct tmk_sheet *sheet,
                          enum tmk_by by)
{
    const struct tmk_peak_row *rows;
    uint64_t n;
    if (tmk_peak_group(f->peak, by, &rows, &n, NULL) < 0)
        tmk_die("out of memory");
    bool is_known = n > 1 || (n == 1 && rows[0].key && strcmp(rows[0].key, "other") != 0);
    if (is_known)
        write_shares(sheet, f, by, rows, n, tmk_peak_bytes(f->peak));
}

/* Write what the framework's allocator had reserved at the peak. */
static void write_reserved(const struct tmk_process_answer *f, struct tmk_sheet *sheet)
{
    char held[TMK_AMOUNT_BYTES], cached[TMK_AMOUNT_BYTES];
    if (!f->has_reserved)
        return;
    uint64_t unused = f->reserved_bytes > f->peak_bytes ? f->reserved_bytes - f->peak_bytes : 0;
    tmk_sheet_text(sheet, "%s were reserved then: %s of that cached, unused.",
                   tmk_size_text(f->reserved_bytes, held), tmk_size_text(unused, cached));
}

/* Write the parameters as the model counts them: blocks may be larger than the tensors in them. */
static void write_parameters(const struct tmk_process_answer *f, struct tmk_sheet *sheet)
{
    char size[TMK_AMOUNT_BYTES], trained[TMK_AMOUNT_BYTES], count[TMK_AMOUNT_BYTES];
    struct tmk_parameters_sum sum = tmk_process_answer_parameters(f);
    if (sum.n > 0)
        tmk_sheet_text(sheet,
                       "The model has %s parameters there: tensors of %s, of which %s are trained.",
                       tmk_count_text(sum.n, count), tmk_size_text(sum.size_bytes, size),
                       tmk_size_text(sum.trained_bytes, trained));
}

static void write_peak(const struct tmk_process_answer *f, struct tmk_sheet *sheet)
{
    char size[TMK_AMOUNT_BYTES], time[TMK_AMOUNT_BYTES], device[24], step[TMK_STEP_TEXT_BYTES];
    tmk_sheet_heading(sheet, "PEAK");
    if (!f->has_peak) {
        tmk_sheet_text(sheet, "No block was ever allocated.");
        return;
    }
    tmk_sheet_text(sheet, "At most %s were allocated on %s: after %s%s.",
                   tmk_size_text(f->peak_bytes, size), tmk_device_name(f->device, device),
                   tmk_time_text(tmk_process_answer_run_ns(f, f->peak_ns), time),
                   tmk_step_text(f->p, f->peak_step, ", ", step));
    write_reserved(f, sheet);
    if (f->detail_lost)
        tmk_sheet_text(
            sheet,
            "What was alive then is not in the trace any more. The largest moment that is, "
            "%s after %s%s, was made of:",
            tmk_size_text(tmk_peak_bytes(f->peak), size),
            tmk_time_text(tmk_process_answer_run_ns(f, tmk_peak_time_ns(f->peak)), time),
            tmk_step_text(f->p, tmk_peak_step(f->peak), ", ", step));
    else
        tmk_sheet_text(sheet,
                       "What was alive at that moment, by what it is and by what allocated it:");
    write_peak_by(f, sheet, TMK_BY_CATEGORY);
    write_parameters(f, sheet);
    write_peak_by(f, sheet, TMK_BY_COMPONENT);
    write_peak_by(f, sheet, TMK_BY_MODULE);
    write_peak_by(f, sheet, TMK_BY_STAGE);
    write_peak_by(f, sheet, TMK_BY_STEP);
    write_peak_by(f, sheet, TMK_BY_TENSOR);
    write_peak_by(f, sheet, TMK_BY_SITE);
}

/* ---- timeline and steps ---- */

static void write_timeline(const struct tmk_process_answer *f, struct tmk_sheet *sheet)
{
    const struct tmk_timeline_part *parts = tmk_process_answer_parts(f);
    uint32_t n = tmk_timeline_n_parts(f->timeline);
    if (!parts)
        return;
    char device[24];
    char *title = tmk_xformat("MEMORY OVER TIME (%s, most in each column)",
                              tmk_device_name(f->device, device));
    uint64_t values[TMK_CHART_COLUMNS];
    for (uint32_t i = 0; i < n && i < TMK_CHART_COLUMNS; i++)
        values[i] = tmk_process_answer_part_max(f, i);
    tmk_sheet_heading(sheet, title);
    tmk_sheet_chart(sheet, values, n, tmk_process_answer_run_ns(f, 0),
                    tmk_process_answer_run_ns(f, f->p->end_ns));
    free(title);
}

static void write_trend(const struct tmk_process_answer *f, const struct tmk_steps_digest *d,
                        struct tmk_sheet *sheet)
{
    char time[TMK_AMOUNT_BYTES], count[TMK_AMOUNT_BYTES], words[TMK_LEAK_WORDS_BYTES];
    tmk_sheet_text(sheet, "%s steps of %s on average; %s%s.", tmk_count_text(d->n_steps, count),
                   tmk_time_text(d->mean_ns, time), tmk_leakage_text(f->leakage, d->trend, words),
                   tmk_leakage_n(f->leakage) > 0 ? ": see LEAKS, above" : "");
}

static void add_report_step_cells(struct tmk_table *t, const struct tmk_step_row *row)
{
    tmk_table_cellf(t, "%" PRId64 "%s", row->step, row->open ? " (last)" : "");
    tmk_table_time(t, row->end_ns - row->start_ns);
    tmk_table_size(t, row->peak_bytes);
    tmk_table_size(t, row->end_bytes);
    tmk_table_count(t, row->n_allocs);
    tmk_table_count(t, row->n_frees);
    tmk_table_size(t, row->alloc_bytes);
}

static void write_report_steps(const struct tmk_process_answer *f, struct tmk_sheet *sheet)
{
    static const struct tmk_column columns[] = {
        {"step", TMK_LEFT, TMK_FIXED},         {"took", TMK_RIGHT, TMK_FIXED},
        {"peak", TMK_RIGHT, TMK_FIXED},        {"at its end", TMK_RIGHT, TMK_FIXED},
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
    write_trend(f, &digest, sheet);
    if (n < digest.n_steps)
        tmk_sheet_text(sheet, "The first, the last and those with the largest peaks:");
    tmk_sheet_table(sheet, t);
}

/* Write the heading of a section that needs detail, with the part of the run for which there is
 * detail. */
static void write_heading_since(const struct tmk_process_answer *f, struct tmk_sheet *sheet,
                                const char *text, const char *whole)
{
    char time[TMK_AMOUNT_BYTES];
    char *title =
        f->quality.n_given_up
            ? tmk_xformat(
                  "%s (since %s; what is older was given up)", text,
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
    tmk_table_cell(t, s->is_known ? tmk_frame_text(&s->site, true, site) : "(no line known)");
    tmk_table_count(t, s->n_allocs);
    tmk_table_size(t, s->bytes);
    tmk_table_cell(t, s->live_blocks ? tmk_count_text(s->live_blocks, text) : NULL);
    tmk_table_size(t, s->live_blocks ? s->live_bytes : TMK_BYTES_UNKNOWN);
}

static struct tmk_table *open_site_table(void)
{
    static const struct tmk_column columns[] = {
        {"line of code", TMK_LEFT, TMK_SHRINK}, {"count", TMK_RIGHT, TMK_FIXED},
        {"allocated", TMK_RIGHT, TMK_FIXED},    {"left", TMK_RIGHT, TMK_FIXED},
        {"size left", TMK_RIGHT, TMK_FIXED},
    };
    return tmk_table_open(columns, TMK_N(columns));
}

static void write_sites(const struct tmk_process_answer *f, struct tmk_sheet *sheet)
{
    uint64_t n = tmk_sites_n(f->sites);
    if (n == 0)
        return;
    struct tmk_table *t = open_site_table();
    for (uint64_t i = 0; i < n && i < MAX_SITES; i++)
        add_site_row(t, tmk_sites_get(f->sites, i));
    write_heading_since(f, sheet, "LINES THAT ALLOCATE MOST", " (over the whole run)");
    tmk_sheet_table(sheet, t);
    if (n > MAX_SITES)
        tmk_sheet_text(sheet, "%" PRIu64 " more lines; --format json has a hundred", n - MAX_SITES);
}

static void write_still_alive(const struct tmk_process_answer *f, struct tmk_sheet *sheet)
{
    uint64_t top[MAX_LEFT];
    char blocks[TMK_AMOUNT_BYTES], size[TMK_AMOUNT_BYTES];
    uint64_t n = tmk_sites_top_live(f->sites, MAX_LEFT, top);
    tmk_sheet_heading(sheet, "STILL ALIVE AT THE END");
    if (f->n_live == 0) {
        tmk_sheet_text(sheet, "Nothing: every block was freed.");
        return;
    }
    tmk_sheet_text(sheet, "%s blocks, %s, most of them from:", tmk_count_text(f->n_live, blocks),
                   tmk_size_text(f->live_bytes, size));
    struct tmk_table *t = open_site_table();
    for (uint64_t i = 0; i < n; i++)
        add_site_row(t, tmk_sites_get(f->sites, top[i]));
    tmk_sheet_table(sheet, t);
}

/* ---- ooms and marks ---- */

static void write_oom_use(const struct tmk_oom *o, struct tmk_sheet *sheet)
{
    char used[TMK_AMOUNT_BYTES], limit[TMK_AMOUNT_BYTES], held[TMK_AMOUNT_BYTES];
    if (o->used_bytes != UINT64_MAX && o->total_bytes != UINT64_MAX)
        tmk_sheet_text(sheet, "Of the card %s of %s were used, %s by segments of this process.",
                       tmk_size_text(o->used_bytes, used), tmk_size_text(o->total_bytes, limit),
                       tmk_size_text(o->segment_bytes, held));
}

static void write_oom(const struct tmk_process_answer *f, uint64_t i, struct tmk_sheet *sheet)
{
    const struct tmk_oom *o = tmk_ooms_get(f->ooms, i);
    char wanted[TMK_AMOUNT_BYTES], used[TMK_AMOUNT_BYTES], limit[TMK_AMOUNT_BYTES];
    char time[TMK_AMOUNT_BYTES], device[24], step[TMK_STEP_TEXT_BYTES], site[TMK_FRAME_TEXT_BYTES];
    tmk_time_text(tmk_process_answer_run_ns(f, o->time_ns), time);
    tmk_size_text(o->requested_bytes, wanted);
    tmk_device_name(o->device, device);
    tmk_step_text(f->p, o->step, ", ", step);
    if (o->is_of_driver && o->device == TIDEMARK_HOST)
        tmk_sheet_text(sheet, "After %s%s: the driver refused %s of host memory.", time, step,
                       wanted);
    else if (o->is_of_driver)
        tmk_sheet_text(sheet, "After %s%s: the driver refused %s on %s.", time, step, wanted,
                       device);
    else
        tmk_sheet_text(sheet, "After %s%s: %s more were wanted on %s, with %s in use%s%s.", time,
                       step, wanted, device, tmk_size_text(o->allocated_bytes, used),
                       o->capacity_bytes ? " of " : "",
                       o->capacity_bytes ? tmk_size_text(o->capacity_bytes, limit) : "");
    write_oom_use(o, sheet);
    if (o->has_site)
        tmk_sheet_text(sheet, "Asked for by %s%s%s.", tmk_frame_text(&o->site, true, site),
                       o->module ? ", in module " : "", o->module ? o->module : "");
}

static void write_oom_holders(const struct tmk_process_answer *f, uint64_t i,
                              struct tmk_sheet *sheet, enum tmk_by by)
{
    const struct tmk_peak_row *rows;
    uint64_t n;
    if (tmk_ooms_holders(f->ooms, i, by, &rows, &n) < 0)
        tmk_die("out of memory");
    if (n > 1 || (n == 1 && rows[0].key))
        write_shares(sheet, f, by, rows, n, tmk_ooms_get(f->ooms, i)->allocated_bytes);
}

static void write_ooms(const struct tmk_process_answer *f, struct tmk_sheet *sheet)
{
    uint64_t n = tmk_ooms_n(f->ooms), kept = tmk_ooms_n_kept(f->ooms);
    if (n == 0)
        return;
    write_heading_since(f, sheet, "OUT OF MEMORY", "");
    if (n > MAX_OOMS)
        tmk_sheet_text(sheet, "It happened %" PRIu64 " times; the first ones and the last:", n);
    for (uint64_t i = 0; i < kept; i++)
        if (i + 1 < MAX_OOMS || i + 1 == kept)
            write_oom(f, i, sheet);
    if (tmk_ooms_get(f->ooms, kept - 1)->allocated_bytes == 0)
        return;
    tmk_sheet_text(sheet, "Who held the memory %s:", n > 1 ? "the last time" : "then");
    write_oom_holders(f, kept - 1, sheet, TMK_BY_CATEGORY);
    write_oom_holders(f, kept - 1, sheet, TMK_BY_MODULE);
    write_oom_holders(f, kept - 1, sheet, TMK_BY_SITE);
}

/* Write in short why it ran out of memory the first time. */
static void write_why(const struct tmk_report_answer *r, struct tmk_sheet *sheet)
{
    if (!r->explanation || tmk_explanation_n(r->explanation) == 0)
        return;
    const struct tmk_case *c = tmk_explanation_get(r->explanation, 0);
    char *title = tmk_xformat("WHY IT RAN OUT%s: %s",
                              tmk_explanation_n_ooms(r->explanation) > 1 ? ", THE FIRST TIME" : "",
                              tmk_cause_name(c->verdict.rows[0].cause));
    tmk_sheet_heading(sheet, title);
    free(title);
    tmk_explain_reason_text(c, sheet);
    if (c->n_fixes > 0) {
        tmk_sheet_text(sheet, "What would have helped (tidemark explain has all of it):");
        if (sheet->markdown)
            fputc('\n', sheet->out);
        tmk_explain_fixes_text(c, MAX_FIXES, sheet);
    }
}

static void write_marks(const struct tmk_process_answer *f, struct tmk_sheet *sheet)
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
    write_heading_since(f, sheet, "MARKS", "");
    tmk_sheet_table(sheet, t);
    if (n > MAX_MARKS)
        tmk_sheet_text(sheet, "%" PRIu64 " more", n - MAX_MARKS);
}

/* ---- quality ---- */

static void write_sentence(void *arg, const char *text)
{
    tmk_sheet_item(arg, text);
}

static void write_refused(void *arg, const char *text)
{
    char *sentence = tmk_xformat("Not recorded: %s.", text);
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
        char *sentence = tmk_xformat("There are losses %s.", tmk_losses_text(&sum, text));
        tmk_sheet_item(sheet, sentence);
        free(sentence);
    }
    return (sum.n_processes > 0) +
           (unsigned)tmk_refused_each(tmk_run_path(r->run), r->run, write_refused, sheet);
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
        tmk_sheet_item(sheet, "Everything is there: no event was dropped, none given up.");
    if (f->quality.merged)
        tmk_sheet_item(sheet,
                       "The process was killed or left without clean-up; its last events were "
                       "found in memory and are included.");
    if (f->quality.live)
        tmk_sheet_item(sheet, "The process is still running: this is how it stands now.");
    char size[TMK_AMOUNT_BYTES];
    uint64_t bytes = tmk_reader_file_bytes(f->p->reader);
    uint64_t n = f->n_events - f->quality.n_given_up;
    char *text = tmk_xformat("The trace has %s, %.1f bytes an event.", tmk_size_text(bytes, size),
                             n ? (double)bytes / (double)n : 0);
    tmk_sheet_item(sheet, text);
    free(text);
}

void tmk_report_text(const struct tmk_report_answer *r, struct tmk_sheet *sheet)
{
    const struct tmk_process_answer *f = &r->about;
    char *title = tmk_xformat("tidemark report: %s", tmk_run_path(r->run));
    tmk_sheet_title(sheet, title);
    free(title);
    write_report_header(r, sheet);
    if (r->ranks)
        write_processes(r, sheet);
    write_ooms(f, sheet);
    write_why(r, sheet);
    write_peak(f, sheet);
    tmk_report_leak_text(f, sheet);
    tmk_report_card_text(f, sheet);
    tmk_report_frag_text(f, sheet);
    write_timeline(f, sheet);
    write_report_steps(f, sheet);
    tmk_report_forecast_text(f, sheet);
    write_sites(f, sheet);
    write_still_alive(f, sheet);
    write_marks(f, sheet);
    write_quality(r, sheet);
}
