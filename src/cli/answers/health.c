/* SPDX-License-Identifier: MIT */
/* cli/answers/health.c - see health.h. */
#include "cli/answers/health.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "cli/front/target.h"
#include "cli/output/xalloc.h"
#include "kit/amount.h"
#include "kit/arena.h"
#include "kit/language.h"
#include "passes/accounting.h"
#include "passes/imbalance/rank_facts.h"
#include "passes/leak/leak.h"
#include "passes/leak/leak_words.h"
#include "passes/leak/leaks.h"
#include "passes/oom/ooms.h"
#include "passes/quality.h"
#include "passes/steps.h"
#include "tidemark/tidemark.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"

/* Other processes than the one that was asked for are swept up to this many, with so many events:
 * about a second's worth. */
enum { MOST_OTHERS = 16 };
#define MOST_EVENTS 20000000u

const char *tmk_health_name(enum tmk_health_kind kind)
{
    static const char *const names[] = {
        [TMK_HEALTH_HEALTHY] = "healthy",     [TMK_HEALTH_LEAKS] = "leaks",
        [TMK_HEALTH_GREW] = "grew",           [TMK_HEALTH_RAN_OUT] = "ran_out",
        [TMK_HEALTH_TOO_SHORT] = "too_short", [TMK_HEALTH_NEARLY_RAN_OUT] = "nearly_ran_out",
        [TMK_HEALTH_KILLED] = "killed",       [TMK_HEALTH_NOTHING] = "nothing",
    };
    return names[kind];
}

enum tmk_role tmk_health_role(enum tmk_health_kind kind)
{
    static const enum tmk_role roles[] = {
        [TMK_HEALTH_HEALTHY] = TMK_ROLE_GOOD,   [TMK_HEALTH_LEAKS] = TMK_ROLE_BAD,
        [TMK_HEALTH_GREW] = TMK_ROLE_WARN,      [TMK_HEALTH_RAN_OUT] = TMK_ROLE_BAD,
        [TMK_HEALTH_TOO_SHORT] = TMK_ROLE_WARN, [TMK_HEALTH_NEARLY_RAN_OUT] = TMK_ROLE_WARN,
        [TMK_HEALTH_KILLED] = TMK_ROLE_WARN,    [TMK_HEALTH_NOTHING] = TMK_ROLE_WARN,
    };
    return roles[kind];
}

/* Name the process where the run has several; "" else. The caller's. */
static char *of_process(struct tmk_run *run, const struct tmk_process *p)
{
    char label[40];
    return tmk_run_n_processes(run) > 1 ? tmk_xformat(_(" of %.40s"), tmk_process_label(p, label))
                                        : tmk_xstrdup("");
}

static void name_line(struct tmk_health *h, const struct tmk_process *p, bool has_site,
                      const struct tmk_frame *site)
{
    h->p = p;
    h->has_site = has_site;
    if (has_site)
        h->site = *site;
}

/* ---- out of memory ---- */

struct tmk_failed_request tmk_failed_request_of(const struct tmk_process *p,
                                                const struct tmk_oom *o)
{
    return (struct tmk_failed_request){
        .p = p,
        .device = o->device,
        .step = o->step,
        .request_bytes = o->requested_bytes,
        .allocated_bytes = o->allocated_bytes,
        .reserved_bytes = o->reserved_bytes,
        .limit_bytes = o->capacity_bytes ? o->capacity_bytes : UINT64_MAX,
        .is_of_driver = o->is_of_driver,
        .site = o->has_site ? &o->site : NULL,
    };
}

char *tmk_failed_request_text(const struct tmk_failed_request *r)
{
    char device[24], step[TMK_STEP_TEXT_BYTES], site[TMK_FRAME_TEXT_BYTES];
    char request[TMK_AMOUNT_BYTES], allocated[TMK_AMOUNT_BYTES], reserved[TMK_AMOUNT_BYTES];
    char limit[TMK_AMOUNT_BYTES];
    bool is_host = r->is_of_driver && r->device == TIDEMARK_HOST;
    bool has_reserved = r->reserved_bytes != UINT64_MAX;
    bool has_limit = r->limit_bytes != UINT64_MAX;
    tmk_step_text(r->p, r->step, " ", step);
    tmk_size_text(r->request_bytes, request);
    tmk_size_text(r->allocated_bytes, allocated);
    if (has_reserved)
        tmk_size_text(r->reserved_bytes, reserved);
    if (has_limit)
        tmk_size_text(r->limit_bytes, limit);
    char *amounts =
        tmk_xformat(has_reserved && has_limit ? _("%s allocated, %s reserved and a limit of %s")
                    : has_reserved            ? _("%s allocated and %s reserved%.0s")
                    : has_limit               ? _("%s allocated%.0s and a limit of %s")
                                              : _("%s allocated%.0s%.0s"),
                    allocated, has_reserved ? reserved : "", has_limit ? limit : "");
    char *text = tmk_xformat(
        _("%s%s%s%s: the %s for %s%s%s failed with %s"),
        is_host ? _("Out of host memory") : _("Out of memory"), is_host ? "" : _(" on "),
        is_host ? "" : tmk_device_name(r->device, device), step,
        r->is_of_driver ? _("request to the driver") : _("request"), request,
        r->site ? _(" at ") : "", r->site ? tmk_frame_text(r->site, true, site) : "", amounts);
    free(amounts);
    return text;
}

/* Returns ", 3 times in all; the program went on to step 40" or a part of that; the caller's. */
static char *what_followed(const struct tmk_process_answer *f, const struct tmk_oom *o)
{
    uint64_t n = tmk_ooms_n(f->ooms), n_steps = tmk_steps_n(f->steps);
    const struct tmk_step_row *last = n_steps ? tmk_steps_get(f->steps, n_steps - 1) : NULL;
    char *times =
        n > 1 ? tmk_xformat(_("; it failed %" PRIu64 " times in all"), n) : tmk_xstrdup("");
    bool goes_on = last && last->step > o->step && o->step != TMK_NO_STEP;
    char *text = goes_on
                     ? tmk_xformat(_("%s; the program went on to step %" PRId64), times, last->step)
                     : tmk_xstrdup(times);
    free(times);
    return text;
}

/* Tell the first request that failed in the process. */
static void judge_oom(struct tmk_health *h, const struct tmk_process_answer *f)
{
    const struct tmk_oom *o = tmk_ooms_get(f->ooms, 0);
    struct tmk_failed_request r = tmk_failed_request_of(f->p, o);
    char *what = tmk_failed_request_text(&r), *then = what_followed(f, o);
    h->kind = TMK_HEALTH_RAN_OUT;
    h->text = tmk_xformat("%s%s", what, then);
    name_line(h, f->p, o->has_site, &o->site);
    free(what);
    free(then);
}

/* Tell of the rank that ran out of memory first, of which only a few facts are known here. */
static void judge_rank_oom(struct tmk_health *h, const struct tmk_imbalance *ranks,
                           struct tmk_run *run)
{
    const struct tmk_process *p = tmk_run_process(run, ranks->first_oom);
    const struct tmk_rank_facts *facts = &ranks->rows[ranks->first_oom].facts;
    char label[40], step[TMK_STEP_TEXT_BYTES];
    h->kind = TMK_HEALTH_RAN_OUT;
    h->text = tmk_xformat(_("Out of memory in %s%s"), tmk_process_label(p, label),
                          tmk_step_text(p, facts->oom_step, " ", step));
}

char *tmk_near_miss_text(const struct tmk_near_miss *near)
{
    char device[24], size[TMK_AMOUNT_BYTES], total[TMK_AMOUNT_BYTES];
    tmk_device_name(near->device, device);
    if (near->n_retries > 0)
        return tmk_xformat(_("Nearly out of memory on %s: the driver failed %" PRIu64
                             " request%s, the last for %s, and torch released its cache to go on"),
                           device, near->n_retries, near->n_retries == 1 ? "" : "s",
                           tmk_size_text(near->requested_bytes, size));
    return tmk_xformat(_("Nearly out of memory on %s: %s of its %s were in use"), device,
                       tmk_size_text(near->used_bytes, size),
                       tmk_size_text(near->total_bytes, total));
}

static bool judge_near_miss(struct tmk_health *h, const struct tmk_process_answer *f)
{
    struct tmk_near_miss near;
    if (!tmk_ooms_near_miss(f->ooms, &near))
        return false;
    h->kind = TMK_HEALTH_NEARLY_RAN_OUT;
    h->text = tmk_near_miss_text(&near);
    return true;
}

/* ---- growth ---- */

static double leaked_per_second(const struct tmk_leakage *l)
{
    double sum = 0;
    for (uint64_t i = 0; i < tmk_leakage_n(l); i++)
        sum += tmk_leakage_get(l, i)->bytes_per_second;
    return sum;
}

static void take_leak(struct tmk_health *h, struct tmk_run *run, const struct tmk_process *p,
                      const struct tmk_leakage *l)
{
    char words[TMK_LEAK_WORDS_BYTES], *whose = of_process(run, p);
    const struct tmk_leak *leak = tmk_leakage_get(l, 0);
    free(h->text);
    h->kind = TMK_HEALTH_LEAKS;
    h->text =
        tmk_xformat(_("Leak: %s%s"), tmk_leakage_text(l, TMK_STEPS_TREND_STEADY, words), whose);
    name_line(h, p, leak->has_site, &leak->site);
    free(whose);
}

/* Sweep another process for leaks alone. NULL: it could not be read, of which other views tell. */
static struct tmk_leakage *sweep_other(struct tmk_process *p)
{
    struct tmk_leakage *l = NULL;
    struct tmk_replay rp;
    struct tmk_error err = {0};
    if (tmk_leakage_open(p, TMK_LEAK_DEFAULT_BYTES, &l) < 0)
        return NULL;
    struct tmk_visitor visitor = tmk_leakage_visitor(l);
    if (tmk_process_sweep(p, &visitor, 1, &rp, &err) < 0)
        return tmk_leakage_close(l);
    int rc = tmk_leakage_finish(l, &rp, &err);
    tmk_replay_fini(&rp);
    return rc == 0 ? l : tmk_leakage_close(l);
}

/* Look for the process that leaks most among the others. */
static bool judge_other_leaks(struct tmk_health *h, struct tmk_run *run,
                              const struct tmk_process *done)
{
    uint32_t n = tmk_run_n_processes(run);
    uint64_t n_events = 0;
    double most = 0;
    for (uint32_t i = 0; i < n; i++)
        n_events += tmk_reader_status(tmk_run_process(run, i)->reader)->n_events;
    for (uint32_t i = 0; i < n && n <= MOST_OTHERS + 1 && n_events <= MOST_EVENTS; i++) {
        struct tmk_process *p = tmk_run_process(run, i);
        struct tmk_leakage *l = p == done ? NULL : sweep_other(p);
        if (l && tmk_leakage_verdict(l) == TMK_LEAK_FOUND && leaked_per_second(l) > most) {
            most = leaked_per_second(l);
            take_leak(h, run, p, l);
        }
        tmk_leakage_close(l);
    }
    return most > 0;
}

static bool judge_leaks(struct tmk_health *h, struct tmk_run *run,
                        const struct tmk_process_answer *f)
{
    if (tmk_leakage_verdict(f->leakage) != TMK_LEAK_FOUND)
        return tmk_run_n_processes(run) > 1 && judge_other_leaks(h, run, f->p);
    take_leak(h, run, f->p, f->leakage);
    return true;
}

/* Returns "memory kept after a step is steady", or what is true without steps. */
static const char *trend_text(const struct tmk_process_answer *f, char *buffer)
{
    bool has_steps = tmk_leakage_n_steps(f->leakage) > 0;
    struct tmk_leak_floor floor = tmk_leakage_floor(f->leakage);
    if (!has_steps && floor.bytes < tmk_leakage_threshold(f->leakage))
        return _("nothing grew steadily");
    return tmk_leakage_text(f->leakage, tmk_steps_digest(f->steps).trend, buffer);
}

/* Returns "the peak was 7.0 MiB on cuda:0 in step 1"; the caller's. */
static char *peak_text(struct tmk_run *run, const struct tmk_process_answer *f)
{
    char size[TMK_AMOUNT_BYTES], device[24], step[TMK_STEP_TEXT_BYTES];
    char *whose = of_process(run, f->p);
    char *text = tmk_xformat(_("the peak%s was %s on %s%s"), whose,
                             tmk_size_text(f->peak_bytes, size), tmk_device_name(f->device, device),
                             tmk_step_text(f->p, f->peak_step, " ", step));
    free(whose);
    return text;
}

/* There is no block of a framework's allocator, perhaps memory from the driver. */
static void judge_nothing(struct tmk_health *h, const struct tmk_process_answer *f)
{
    char device[24], size[TMK_AMOUNT_BYTES];
    h->kind = TMK_HEALTH_NOTHING;
    for (uint64_t i = 0; i < tmk_accounting_n(f->accounting); i++) {
        const struct tmk_device_account *a = tmk_accounting_get(f->accounting, i);
        if (!a->is_peak || a->segment_bytes == 0)
            continue;
        h->text =
            tmk_xformat(_("No framework's allocator was seen; this process had %s from the "
                          "driver on %s"),
                        tmk_size_text(a->segment_bytes, size), tmk_device_name(a->device, device));
        return;
    }
    h->text = tmk_xstrdup(_("Nothing recorded: the trace has no allocation"));
}

/* It did not run out and does not leak: how did it end, and was it long enough? */
static void judge_rest(struct tmk_health *h, struct tmk_run *run,
                       const struct tmk_process_answer *f)
{
    char words[TMK_LEAK_WORDS_BYTES], size[TMK_AMOUNT_BYTES], time[TMK_AMOUNT_BYTES];
    struct tmk_leak_floor floor = tmk_leakage_floor(f->leakage);
    uint64_t n_steps = tmk_leakage_n_steps(f->leakage);
    bool is_short = tmk_leakage_verdict(f->leakage) == TMK_LEAK_TOO_SHORT;
    char *peak = peak_text(run, f);
    if (f->quality.merged && !f->quality.live) {
        h->kind = TMK_HEALTH_KILLED;
        h->text = tmk_xformat(_("Killed after %s with %s allocated; %s"),
                              tmk_time_text(tmk_process_answer_run_ns(f, f->p->end_ns), time),
                              tmk_size_text(f->live_bytes, size), peak);
    } else if (is_short && n_steps > 0) {
        h->kind = TMK_HEALTH_TOO_SHORT;
        h->text =
            tmk_xformat(_("Too short to judge: %" PRIu64 " step%s ended, and a verdict on leaks "
                          "takes %d; %s"),
                        n_steps, n_steps == 1 ? "" : "s", TMK_LEAK_MIN_STEPS, peak);
    } else if (is_short) {
        h->kind = TMK_HEALTH_TOO_SHORT;
        h->text =
            tmk_xformat(_("Too short to judge: no step ended, and few blocks were made; %s"), peak);
    } else if (floor.n_rises > 0 && floor.bytes >= tmk_leakage_threshold(f->leakage)) {
        h->kind = TMK_HEALTH_GREW;
        h->text = tmk_xformat(_("Growth: %s"), trend_text(f, words));
    } else {
        h->kind = TMK_HEALTH_HEALTHY;
        h->text = tmk_xformat(_("Healthy: %s; %s"), trend_text(f, words), peak);
    }
    free(peak);
}

char *tmk_steps_text(const struct tmk_process_answer *f, bool with_trend)
{
    struct tmk_steps_digest d = tmk_steps_digest(f->steps);
    char count[TMK_AMOUNT_BYTES], time[TMK_AMOUNT_BYTES], words[TMK_LEAK_WORDS_BYTES];
    if (d.n_steps == 0)
        return NULL;
    return tmk_xformat(_("%s step%s%s%s%s%s%s"), tmk_count_text(d.n_steps, count),
                       d.n_steps == 1 ? "" : "s", d.mean_ns ? _(", ") : _(", not finished"),
                       d.mean_ns ? tmk_time_text(d.mean_ns, time) : "", d.mean_ns ? _(" each") : "",
                       with_trend ? _("; ") : "",
                       with_trend ? tmk_leakage_text(f->leakage, d.trend, words) : "");
}

/* ---- all of it ---- */

/* Tell that the trace ends before the program did, or that the program was killed. */
static void tell_end(struct tmk_health *h, const struct tmk_process_answer *f)
{
    char time[TMK_AMOUNT_BYTES], *what = NULL;
    bool is_told = h->kind == TMK_HEALTH_KILLED || h->kind == TMK_HEALTH_RAN_OUT;
    if (f->quality.stop != TMK_STOP_NONE)
        what = tmk_xformat(_("; recording stopped after %s"),
                           tmk_time_text(tmk_process_answer_run_ns(f, f->p->end_ns), time));
    else if (f->quality.merged && !f->quality.live && !is_told)
        what = tmk_xstrdup(_("; the process was killed"));
    if (!what)
        return;
    char *text = tmk_xformat("%s%s", h->text, what);
    free(h->text);
    free(what);
    h->text = text;
}

/* Add that one rank needs far more than the others, whatever else the verdict is. */
static void tell_imbalance(struct tmk_health *h, struct tmk_run *run, const struct tmk_imbalance *b)
{
    char label[40], size[TMK_AMOUNT_BYTES];
    if (!b || !b->is_judged || !b->is_imbalanced || h->kind == TMK_HEALTH_RAN_OUT)
        return;
    const struct tmk_rank_row *row = &b->rows[b->highest];
    char *text =
        tmk_xformat(_("%s. Imbalanced: the peak of %s is %.2f times the ranks' median (%s)"),
                    h->text, tmk_process_label(tmk_run_process(run, b->highest), label),
                    (double)row->facts.peak_bytes / b->median_bytes,
                    tmk_size_text(tmk_size_whole(b->median_bytes), size));
    free(h->text);
    h->text = text;
}

static bool is_damaged(const struct tmk_quality *q)
{
    return q->n_bad_chunks > 0 || q->n_stray_bytes > 0 || q->header_damaged;
}

static char *next_command(const struct tmk_health *h, struct tmk_run *run,
                          const struct tmk_process_answer *f)
{
    static const char *const commands[] = {
        [TMK_HEALTH_HEALTHY] = "peak",
        [TMK_HEALTH_LEAKS] = "leak",
        [TMK_HEALTH_GREW] = "leak",
        [TMK_HEALTH_RAN_OUT] = "explain",
        [TMK_HEALTH_NEARLY_RAN_OUT] = "explain",
        [TMK_HEALTH_TOO_SHORT] = "peak",
        [TMK_HEALTH_KILLED] = "peak",
        [TMK_HEALTH_NOTHING] = "check",
    };
    struct tmk_arena words = {0};
    bool is_known = h->kind == TMK_HEALTH_RAN_OUT || h->kind == TMK_HEALTH_LEAKS;
    bool is_driver_only = h->kind == TMK_HEALTH_NOTHING && tmk_accounting_n(f->accounting) > 0;
    const char *command = is_damaged(&f->quality) && !is_known ? "check"
                          : is_driver_only                     ? "report --full"
                                                               : commands[h->kind];
    char *text = tmk_xformat("tidemark %s %s", command, tmk_xshell_word(&words, tmk_run_path(run)));
    tmk_arena_fini(&words);
    return text;
}

void tmk_health_init(struct tmk_health *h, struct tmk_run *run, const struct tmk_process_answer *f,
                     const struct tmk_imbalance *ranks)
{
    *h = (struct tmk_health){.p = f->p};
    bool has_oom = ranks && ranks->first_oom != TMK_RANK_NONE;
    if (has_oom && tmk_run_process(run, ranks->first_oom) != f->p)
        judge_rank_oom(h, ranks, run);
    else if (tmk_ooms_n(f->ooms) > 0)
        judge_oom(h, f);
    else if (!judge_leaks(h, run, f) && !judge_near_miss(h, f)) {
        if (f->n_allocs > 0 || f->has_peak)
            judge_rest(h, run, f);
        else
            judge_nothing(h, f);
    }
    tell_end(h, f);
    tell_imbalance(h, run, ranks);
    h->next = next_command(h, run, f);
}

void tmk_health_fini(struct tmk_health *h)
{
    free(h->text);
    free(h->next);
    *h = (struct tmk_health){0};
}
