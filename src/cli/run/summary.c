/* SPDX-License-Identifier: MIT */
/* cli/run/summary.c - see summary.h. */
#include "cli/run/summary.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/answers/process_answer.h"
#include "cli/front/refused.h"
#include "cli/front/target.h"
#include "cli/output/losses.h"
#include "cli/output/say.h"
#include "cli/output/sheet.h"
#include "cli/output/xalloc.h"
#include "kit/amount.h"
#include "kit/arena.h"
#include "kit/print.h"
#include "kit/utf8.h"
#include "model/run.h"
#include "passes/group.h"
#include "passes/oom/ooms.h"
#include "passes/peak.h"
#include "passes/quality.h"
#include "passes/steps.h"
#include "tidemark/tidemark.h"
#include "trace/merge.h"
#include "trace/reader.h"

enum { NAME_WIDTH = 13 };

/* Events of other processes than the one with the largest peak that are replayed to look for an
 * out-of-memory event: a few seconds' worth. */
#define MAX_EVENTS 100000000u

bool tmk_summary_settle(const char *folder)
{
    DIR *dir = opendir(folder);
    unsigned n = 0, n_kept = 0;
    if (!dir)
        return false;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        size_t length = strlen(entry->d_name);
        if (length < 7 || strcmp(entry->d_name + length - 6, ".trace") != 0)
            continue;
        n++;
        char *path = tmk_xformat("%s/%s", folder, entry->d_name);
        struct tmk_error err = {0};
        int rc = tmk_merge_settle(path, &err);
        n_kept += rc == TMK_EFULL;
        if (rc < 0 && rc != TMK_EFULL)
            tmk_say("%s: %s", entry->d_name, err.text);
        free(path);
    }
    closedir(dir);
    if (n_kept > 0)
        tmk_say("the last events of %u process%s are in memory still, because the run's share of "
                "the disk is used up: make room, then tidemark check %s writes them to the disk",
                n_kept, n_kept == 1 ? "" : "es", folder);
    return n > 0;
}

/* ---- lines ---- */

/* Print a name and words behind it; words that do not fit go on a second line. */
__attribute__((format(printf, 2, 3))) static void print_summary_line(const char *name,
                                                                     const char *format, ...)
{
    char text[1024], lead[NAME_WIDTH + 1];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(lead, sizeof lead, "  %-*s", NAME_WIDTH - 2, name);
    tmk_sheet_wrap(stderr, text, lead);
}

/* Returns the end of a path: lines are short here. */
static const char *short_key(const char *key, enum tmk_by by)
{
    const char *slash = key && by == TMK_BY_SITE ? strrchr(key, '/') : NULL;
    return slash ? slash + 1 : key ? key : "(none)";
}

/* Print "activation 2.1 MiB (50 %), parameter ...", as many as fit. */
static void line_shares(const char *name, enum tmk_by by, const struct tmk_peak_row *rows,
                        uint64_t n, uint64_t whole)
{
    char text[TMK_SHEET_WIDTH * 4] = "";
    if (n == 0 || (n == 1 && !rows[0].key))
        return;
    for (uint64_t i = 0; i < n; i++) {
        char size[TMK_AMOUNT_BYTES], percent[TMK_AMOUNT_BYTES];
        char *part = tmk_xformat("%s%.60s %s (%s)", i ? ", " : "", short_key(rows[i].key, by),
                                 tmk_size_text(rows[i].bytes, size),
                                 tmk_percent_text(rows[i].bytes, whole, percent));
        bool fits = tmk_utf8_width(text) + tmk_utf8_width(part) <= TMK_SHEET_WIDTH - NAME_WIDTH;
        if (fits || i == 0)
            strncat(text, part, sizeof text - strlen(text) - 1);
        free(part);
        if (!fits)
            break;
    }
    print_summary_line(name, "%s", text);
}

/* ---- the summary ---- */

/* Returns whether the purpose of most blocks is unknown. */
static bool is_unknown(const struct tmk_peak_row *rows, uint64_t n, uint64_t whole)
{
    static const char unknown[] = "unknown";
    for (uint64_t i = 0; i < n; i++)
        if (rows[i].key && strcmp(rows[i].key, unknown) == 0)
            return rows[i].bytes > whole / 2;
    return false;
}

static void line_holders(const char *name, struct tmk_peak *peak, uint64_t whole)
{
    const struct tmk_peak_row *rows;
    uint64_t n;
    if (tmk_peak_group(peak, TMK_BY_CATEGORY, &rows, &n, NULL) == 0 && !is_unknown(rows, n, whole))
        line_shares(name, TMK_BY_CATEGORY, rows, n, whole);
    if (tmk_peak_group(peak, TMK_BY_MODULE, &rows, &n, NULL) == 0)
        line_shares("modules", TMK_BY_MODULE, rows, n, whole);
    if (tmk_peak_group(peak, TMK_BY_SITE, &rows, &n, NULL) == 0)
        line_shares("lines", TMK_BY_SITE, rows, n, whole);
}

static void line_peak(const struct tmk_process_answer *f)
{
    char size[TMK_AMOUNT_BYTES], time[TMK_AMOUNT_BYTES], device[24], step[TMK_STEP_TEXT_BYTES];
    if (!f->has_peak)
        return;
    print_summary_line("peak", "%s on %s after %s%s", tmk_size_text(f->peak_bytes, size),
                       tmk_device_name(f->device, device),
                       tmk_time_text(f->peak_ns + f->p->offset_ns, time),
                       tmk_step_text(f->p, f->peak_step, ", ", step));
    if (f->detail_lost)
        print_summary_line("made of", "no longer known: --max-size gave that part of the trace up");
    else
        line_holders("made of", f->peak, f->peak_bytes);
}

static void line_steps(const struct tmk_process_answer *f)
{
    static const char *const says[] = {
        [TMK_STEPS_TREND_TOO_SHORT] = "too few to say whether memory grows",
        [TMK_STEPS_TREND_STEADY] = "what stays after each is steady",
        [TMK_STEPS_TREND_GROWING] = "what stays after each GROWS",
        [TMK_STEPS_TREND_SHRINKING] = "what stays after each shrinks",
        [TMK_STEPS_TREND_VARYING] = "what stays after each goes up and down",
    };
    struct tmk_steps_digest d = tmk_steps_digest(f->steps);
    char count[TMK_AMOUNT_BYTES], time[TMK_AMOUNT_BYTES], change[TMK_AMOUNT_BYTES];
    if (d.n_steps == 0)
        return;
    char *more = d.trend == TMK_STEPS_TREND_GROWING
                     ? tmk_xformat(" by %s a step",
                                   tmk_size_text((uint64_t)(d.bytes_per_step + 0.5), change))
                     : tmk_xstrdup("");
    print_summary_line("steps", "%s of %s; %s%s", tmk_count_text(d.n_steps, count),
                       tmk_time_text(d.mean_ns, time), says[d.trend], more);
    free(more);
}

static void line_doubt(void *arg, const char *text)
{
    (void)arg;
    print_summary_line("but", "%s", text);
}

/* Print what processes other than `told` have lost. False: nothing. */
static bool line_other_losses(struct tmk_run *run, const struct tmk_process *told)
{
    struct tmk_losses sum = {0};
    char text[TMK_LOSSES_TEXT_BYTES];
    for (uint32_t i = 0; i < tmk_run_n_processes(run); i++) {
        struct tmk_process *p = tmk_run_process(run, i);
        struct tmk_quality q = tmk_quality_of_status(p);
        if (p != told)
            tmk_losses_add(&sum, &q);
    }
    if (sum.n_processes > 0)
        print_summary_line("but", "%s", tmk_losses_text(&sum, text));
    return sum.n_processes > 0;
}

static void line_refused(void *arg, const char *text)
{
    (void)arg;
    print_summary_line("missing", "%s", text);
}

static void line_recorded(const char *folder, struct tmk_run *run,
                          const struct tmk_process_answer *f)
{
    char allocs[TMK_AMOUNT_BYTES], frees[TMK_AMOUNT_BYTES], blocks[TMK_AMOUNT_BYTES];
    char size[TMK_AMOUNT_BYTES], label[40];
    uint32_t n = tmk_run_n_processes(run);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n; i++)
        bytes += tmk_reader_file_bytes(tmk_run_process(run, i)->reader);
    if (n > 1)
        print_summary_line("processes",
                           "%" PRIu32 " recorded; this is about %s, which had the largest peak", n,
                           tmk_process_label(f->p, label));
    print_summary_line("recorded", "%s allocations, %s frees; %s blocks (%s) left",
                       tmk_count_text(f->n_allocs, allocs), tmk_count_text(f->n_frees, frees),
                       tmk_count_text(f->n_live, blocks), tmk_size_text(f->live_bytes, size));
    bool is_whole = tmk_process_answer_doubts(f, line_doubt, NULL) == 0;
    is_whole &= !line_other_losses(run, f->p);
    is_whole &= tmk_refused_each(folder, run, line_refused, NULL) == 0;
    print_summary_line("trace", "%s%s%s", tmk_size_text(bytes, size), n > 1 ? " in all" : "",
                       is_whole ? ", nothing was lost" : "");
}

/* ---- post-mortem ---- */

/* Print a post-mortem. False: there is nothing to tell. */
static bool post_mortem(const struct tmk_process_answer *f)
{
    uint64_t n = tmk_ooms_n_kept(f->ooms);
    if (n == 0)
        return false;
    const struct tmk_oom *o = tmk_ooms_get(f->ooms, n - 1);
    char wanted[TMK_AMOUNT_BYTES], used[TMK_AMOUNT_BYTES], limit[TMK_AMOUNT_BYTES];
    char time[TMK_AMOUNT_BYTES], device[24], step[TMK_STEP_TEXT_BYTES], label[40];
    char site[TMK_FRAME_TEXT_BYTES];
    tmk_print(stderr, "\nOUT OF MEMORY in %s after %s%s\n", tmk_process_label(f->p, label),
              tmk_time_text(o->time_ns + f->p->offset_ns, time),
              tmk_step_text(f->p, o->step, ", ", step));
    bool is_of_host = o->is_of_driver && o->device == TIDEMARK_HOST;
    print_summary_line("wanted", "%s more %s%s", tmk_size_text(o->requested_bytes, wanted),
                       is_of_host ? "of host memory" : "on ",
                       is_of_host ? "" : tmk_device_name(o->device, device));
    if (!o->is_of_driver)
        print_summary_line("in use", "%s%s%s", tmk_size_text(o->allocated_bytes, used),
                           o->capacity_bytes ? " of " : "",
                           o->capacity_bytes ? tmk_size_text(o->capacity_bytes, limit) : "");
    if (o->used_bytes != UINT64_MAX && o->total_bytes != UINT64_MAX)
        print_summary_line("the card", "%s of %s used; this process has %s of the driver",
                           tmk_size_text(o->used_bytes, used), tmk_size_text(o->total_bytes, limit),
                           tmk_size_text(o->segment_bytes, wanted));
    if (o->has_site)
        print_summary_line("asked by", "%s%s%s", tmk_frame_text(&o->site, true, site),
                           o->module ? ", module " : "", o->module ? o->module : "");
    static const struct {
        const char *name;
        enum tmk_by by;
    } holders[] = {
        {"held by", TMK_BY_CATEGORY}, {"modules", TMK_BY_MODULE}, {"lines", TMK_BY_SITE}};
    const struct tmk_peak_row *rows;
    uint64_t n_rows;
    for (size_t i = 0; i < TMK_N(holders); i++)
        if (tmk_ooms_holders(f->ooms, n - 1, holders[i].by, &rows, &n_rows) == 0)
            line_shares(holders[i].name, holders[i].by, rows, n_rows, o->allocated_bytes);
    if (tmk_ooms_n(f->ooms) > 1)
        print_summary_line("times", "%" PRIu64 "; this is the last", tmk_ooms_n(f->ooms));
    return true;
}

/* Print post-mortems of the processes that the summary is not about. Returns true when there was
 * one. */
static bool other_post_mortems(struct tmk_run *run, const struct tmk_process *done)
{
    uint64_t n_events = 0;
    bool any = false;
    for (uint32_t i = 0; i < tmk_run_n_processes(run); i++) {
        struct tmk_process *p = tmk_run_process(run, i);
        n_events += tmk_reader_status(p->reader)->n_events;
        if (p == done || n_events > MAX_EVENTS)
            continue;
        struct tmk_process_answer f;
        if (tmk_process_answer_init(&f, p, 1) == 0)
            any |= post_mortem(&f);
        tmk_process_answer_fini(&f);
    }
    return any;
}

/* ---- all of it ---- */

static struct tmk_process *largest_process(struct tmk_run *run)
{
    struct tmk_process *best = tmk_run_process(run, 0);
    for (uint32_t i = 1; i < tmk_run_n_processes(run); i++)
        if (tmk_process_peak(tmk_run_process(run, i)) > tmk_process_peak(best))
            best = tmk_run_process(run, i);
    return best;
}

static void print_summary_headline(const char *name, const struct tmk_watch *w,
                                   const struct tmk_outcome *o)
{
    const char *slash = strrchr(w->argv[0], '/');
    const char *program = slash ? slash + 1 : w->argv[0];
    fputc('\n', stderr);
    if (o->signal)
        tmk_say("%s was ended by signal %d (%s); recorded in %s", program, o->signal,
                strsignal(o->signal), name);
    else
        tmk_say("%s ended with status %d; recorded in %s", program, o->status, name);
}

void tmk_summary_print(const char *name, const struct tmk_watch *w, const struct tmk_outcome *o)
{
    struct tmk_run *run = NULL;
    struct tmk_arena words = {0};
    if (tmk_target_open(name, &run) != 0)
        return;
    print_summary_headline(name, w, o);
    struct tmk_process_answer f;
    if (tmk_process_answer_init(&f, largest_process(run), 1) == 0) {
        line_peak(&f);
        line_steps(&f);
        line_recorded(w->folder, run, &f);
        bool ran_out = post_mortem(&f);
        ran_out |= other_post_mortems(run, f.p);
        tmk_print(stderr, "next: tidemark %s %s\n", ran_out ? "explain" : "report",
                  tmk_xshell_word(&words, name));
    }
    tmk_arena_fini(&words);
    tmk_process_answer_fini(&f);
    tmk_run_close(run);
}
