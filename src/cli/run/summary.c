/* SPDX-License-Identifier: MIT */
/* cli/run/summary.c - see summary.h. */
#include "cli/run/summary.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/answers/health.h"
#include "cli/answers/post_mortem.h"
#include "cli/answers/process_answer.h"
#include "cli/answers/ranks_answer.h"
#include "cli/answers/summary_line.h"
#include "cli/front/refused.h"
#include "cli/front/target.h"
#include "cli/output/losses.h"
#include "cli/output/say.h"
#include "cli/output/source_line.h"
#include "cli/output/terminal.h"
#include "cli/output/xalloc.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/print.h"
#include "model/run.h"
#include "passes/group.h"
#include "passes/imbalance/imbalance.h"
#include "passes/peak.h"
#include "passes/quality.h"
#include "trace/merge.h"
#include "trace/reader.h"

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
        tmk_summary_shares(stderr, name, TMK_BY_CATEGORY, rows, n, whole);
    if (tmk_peak_group(peak, TMK_BY_MODULE, &rows, &n, NULL) == 0)
        tmk_summary_shares(stderr, "modules", TMK_BY_MODULE, rows, n, whole);
    if (tmk_peak_group(peak, TMK_BY_SITE, &rows, &n, NULL) == 0)
        tmk_summary_shares(stderr, "lines", TMK_BY_SITE, rows, n, whole);
}

static void line_peak(const struct tmk_process_answer *f)
{
    char size[TMK_AMOUNT_BYTES], time[TMK_AMOUNT_BYTES], device[24], step[TMK_STEP_TEXT_BYTES];
    char amount[TMK_AMOUNT_BYTES], reserved[2 * TMK_AMOUNT_BYTES] = "";
    if (!f->has_peak)
        return;
    if (f->has_reserved)
        snprintf(reserved, sizeof reserved, _(", %s reserved,"),
                 tmk_size_text(f->reserved_bytes, amount));
    tmk_summary_line(stderr, "peak", "%s allocated%s on %s after %s%s",
                     tmk_size_text(f->peak_bytes, size), reserved,
                     tmk_device_name(f->device, device),
                     tmk_time_text(f->peak_ns + f->p->offset_ns, time),
                     tmk_step_text(f->p, f->peak_step, ", ", step));
    if (f->detail_lost)
        tmk_summary_line(stderr, "made of",
                         "no longer known: --max-size gave that part of the trace up");
    else
        line_holders(_("made of"), f->peak, f->peak_bytes);
}

/* The verdict on healthy and leaking runs has the trend already. */
static void line_steps(const struct tmk_process_answer *f, const struct tmk_health *h)
{
    bool is_said = h->kind == TMK_HEALTH_HEALTHY || h->kind == TMK_HEALTH_LEAKS ||
                   h->kind == TMK_HEALTH_GREW || h->kind == TMK_HEALTH_TOO_SHORT;
    char *text = tmk_steps_text(f, !is_said);
    if (text)
        tmk_summary_line(stderr, "steps", "%s", text);
    free(text);
}

static void line_verdict(const struct tmk_health *h)
{
    char source[TMK_SOURCE_LINE_BYTES];
    const char *text = h->has_site ? tmk_source_text(h->p, &h->site, source) : NULL;
    fputs(tmk_role_on(stderr, tmk_health_role(h->kind)), stderr);
    tmk_summary_line(stderr, "verdict", "%s", h->text);
    fputs(tmk_role_off(stderr, tmk_health_role(h->kind)), stderr);
    if (text)
        tmk_summary_code(stderr, text);
}

static void line_doubt(void *arg, const char *text)
{
    (void)arg;
    tmk_summary_line(stderr, "but", "%s", text);
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
        tmk_summary_line(stderr, "but", "%s", tmk_losses_text(&sum, text));
    return sum.n_processes > 0;
}

static void line_refused(void *arg, const char *text)
{
    (void)arg;
    tmk_summary_line(stderr, "missing", "%s", text);
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
        tmk_summary_line(stderr, "processes",
                         "%" PRIu32
                         " recorded; the lines above are about %s, which had the largest peak",
                         n, tmk_process_label(f->p, label));
    char left[64] = "";
    if (f->n_allocs > 0 && f->n_live == 0)
        snprintf(left, sizeof left, _("; every block was freed"));
    else if (f->n_live > 0)
        snprintf(left, sizeof left, _("; %s block%s (%s) alive at the end"),
                 tmk_count_text(f->n_live, blocks), f->n_live == 1 ? "" : "s",
                 tmk_size_text(f->live_bytes, size));
    tmk_summary_line(stderr, "recorded", "%s allocation%s, %s free%s%s",
                     tmk_count_text(f->n_allocs, allocs), f->n_allocs == 1 ? "" : "s",
                     tmk_count_text(f->n_frees, frees), f->n_frees == 1 ? "" : "s", left);
    bool is_whole = tmk_process_answer_doubts(f, line_doubt, NULL) == 0;
    is_whole &= !line_other_losses(run, f->p);
    is_whole &= tmk_refused_each(folder, run, line_refused, NULL) == 0;
    tmk_summary_line(stderr, "trace", "%s%s%s", tmk_size_text(bytes, size),
                     n > 1 ? _(" in all") : "", is_whole ? _(", nothing was lost") : "");
}

/* ---- all of it ---- */

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
    struct tmk_imbalance *ranks = NULL;
    struct tmk_health h = {0};
    if (tmk_target_open(name, &run) != 0)
        return;
    print_summary_headline(name, w, o);
    struct tmk_process_answer f;
    if (tmk_process_answer_init(&f, tmk_post_mortem_subject(run), 1) == 0) {
        if (tmk_run_n_processes(run) > 1)
            tmk_ranks_answer(run, &ranks);
        tmk_health_init(&h, run, &f, ranks);
        line_verdict(&h);
        line_peak(&f);
        line_steps(&f, &h);
        line_recorded(w->folder, run, &f);
        if (ranks)
            tmk_ranks_summary(ranks, stderr);
        tmk_post_mortem_print(stderr, run, &f);
        tmk_print(stderr, _("next: %s\n"), h.next);
    }
    tmk_health_fini(&h);
    tmk_imbalance_close(ranks);
    tmk_process_answer_fini(&f);
    tmk_run_close(run);
}
