/* SPDX-License-Identifier: MIT */
/* cli/answers/moment_answer.c - see moment_answer.h. */
#include "cli/answers/moment_answer.h"

#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/front/target.h"
#include "cli/output/say.h"
#include "kit/amount.h"
#include "kit/progress.h"
#include "model/run.h"
#include "passes/steps.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"

/* ---- the question ---- */

/* "300ms", "1.5s": a time since the run's start; "12", "step:12": a step. */
static bool parse_moment(const char *option, const char *text, const struct tmk_process *p,
                         struct tmk_moment *m)
{
    uint64_t run_ns;
    const char *number = strncmp(text, "step:", 5) == 0 ? text + 5 : text;
    if (tmk_integer_parse(number, &m->step) == 0) {
        m->kind = TMK_MOMENT_STEP;
        return true;
    }
    if (tmk_time_parse(text, &run_ns) == 0) {
        m->kind = TMK_MOMENT_TIME;
        m->time_ns = run_ns > p->offset_ns ? run_ns - p->offset_ns : 0;
        return true;
    }
    tmk_say("--%s: '%s' is neither a step (12, step:12) nor a time (1.5s, 300ms, 42ns)", option,
            text);
    return false;
}

/* The history's row that has the peak asked for. */
static const struct tmk_step_row *exact_row(const struct tmk_moment_answer *l)
{
    const struct tmk_step_row *best = NULL;
    const struct tmk_reader *r = l->p->reader;
    if (l->asked.kind == TMK_MOMENT_PEAK)
        return tmk_steps_peak(l->p, l->asked.any_device, l->asked.device);
    for (uint64_t i = 0; l->asked.kind == TMK_MOMENT_STEP && i < tmk_reader_n_step_rows(r); i++) {
        const struct tmk_step_row *row = tmk_reader_step_row(r, i);
        bool fits =
            row->step == l->asked.step && (l->asked.any_device || row->device == l->asked.device);
        if (fits && (!best || row->peak_bytes > best->peak_bytes))
            best = row;
    }
    return best;
}

int tmk_moment_answer_ask(struct tmk_moment_answer *l, const char *option, const char *at,
                          const char *device)
{
    l->asked = (struct tmk_moment){.kind = TMK_MOMENT_PEAK, .any_device = !device};
    if (at && !parse_moment(option, at, l->p, &l->asked))
        return TMK_EXIT_USAGE;
    if (device && !tmk_target_device(l->p, device, &l->asked.device))
        return TMK_EXIT_USAGE;
    /* The device is decided before the sweep, so that a moment is one device's. */
    l->exact = exact_row(l);
    const struct tmk_step_row *row = l->exact ? l->exact : tmk_steps_peak(l->p, true, 0);
    if (l->asked.any_device && row) {
        l->asked.any_device = false;
        l->asked.device = row->device;
    }
    return 0;
}

/* ---- the answer ---- */

static int replay(struct tmk_moment_answer *l, struct tmk_error *err)
{
    struct tmk_progress progress;
    struct tmk_replay rp;
    int rc = tmk_peak_open(l->p, &l->asked, &l->peak);
    if (rc < 0)
        return rc;
    tmk_progress_init(&progress, stderr, l->p->file);
    struct tmk_visitor visitor = tmk_peak_visitor(l->peak);
    struct tmk_visitor both[] = {visitor, {.arg = &progress, .progress = tmk_progress_tell}};
    rc = tmk_process_sweep(l->p, both, TMK_N(both), &rp, err);
    tmk_progress_fini(&progress);
    if (rc < 0)
        return rc;
    l->quality = tmk_quality_of(l->p, &rp);
    rc = tmk_peak_finish(l->peak, &rp, err);
    tmk_replay_fini(&rp);
    uint64_t found = tmk_peak_found(l->peak) ? tmk_peak_bytes(l->peak) : 0;
    l->detail_lost = l->exact && l->exact->peak_bytes > found;
    return rc;
}

/* Why there is nothing to show. */
static int complain_not_found(const struct tmk_moment_answer *l)
{
    const struct tmk_moment *m = &l->asked;
    char time[TMK_AMOUNT_BYTES];
    if (m->kind == TMK_MOMENT_TIME)
        tmk_say("the detail of that time was given up to stay under --max-size; it begins at %s",
                tmk_time_text(l->quality.detail_from_ns + l->p->offset_ns, time));
    else if (m->kind == TMK_MOMENT_STEP && !l->exact)
        tmk_say("there is no step %" PRId64 " in %s", m->step, l->p->file);
    else
        tmk_say("no block was ever allocated in %s", l->p->file);
    return TMK_EXIT_FINDING;
}

int tmk_moment_answer_sweep(struct tmk_moment_answer *l)
{
    struct tmk_error err = {0};
    int rc = replay(l, &err);
    if (rc < 0) {
        tmk_say("%s: %s", l->p->file, err.text[0] ? err.text : tmk_result_text(rc));
        return rc == TMK_ENOMEM ? TMK_EXIT_FINDING : TMK_EXIT_BAD_TRACE;
    }
    return tmk_peak_found(l->peak) || l->detail_lost ? 0 : complain_not_found(l);
}

void tmk_moment_answer_fini(struct tmk_moment_answer *l)
{
    l->peak = tmk_peak_close(l->peak);
}

void tmk_moment_answer_say_lost(const struct tmk_moment_answer *l)
{
    char kept[TMK_AMOUNT_BYTES], time[TMK_AMOUNT_BYTES];
    const char *why = l->quality.n_given_up ? "was given up to stay under --max-size"
                                            : "is in a part of the trace that cannot be read";
    if (!tmk_peak_found(l->peak)) {
        tmk_say("what was alive then %s", why);
        return;
    }
    tmk_say("what was alive then %s; shown is the largest moment that is left, %s after %s", why,
            tmk_size_text(tmk_peak_bytes(l->peak), kept),
            tmk_time_text(tmk_peak_time_ns(l->peak) + l->p->offset_ns, time));
}

uint64_t tmk_moment_answer_bytes(const struct tmk_moment_answer *l)
{
    return l->detail_lost ? l->exact->peak_bytes : tmk_peak_bytes(l->peak);
}

uint64_t tmk_moment_answer_ns(const struct tmk_moment_answer *l)
{
    uint64_t ns = l->detail_lost ? l->exact->peak_ns : tmk_peak_time_ns(l->peak);
    return ns + l->p->offset_ns;
}

int64_t tmk_moment_answer_step(const struct tmk_moment_answer *l)
{
    return l->detail_lost ? l->exact->step : tmk_peak_step(l->peak);
}

uint16_t tmk_moment_answer_device(const struct tmk_moment_answer *l)
{
    return l->exact ? l->exact->device : tmk_peak_device(l->peak);
}

bool tmk_moment_answer_reserved(const struct tmk_moment_answer *l, uint64_t *ret_bytes)
{
    return !l->detail_lost && tmk_peak_reserved(l->peak, ret_bytes);
}
