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
#include "kit/language.h"
#include "kit/progress.h"
#include "model/run.h"
#include "passes/steps.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"

/* ---- the question ---- */

/* Read a moment: "300ms" or "1.5s" is a time since the run's start, "12" or "step:12" a step. */
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

/* Returns the history's row that has the peak asked for. */
static const struct tmk_step_row *exact_row(const struct tmk_moment_answer *a)
{
    const struct tmk_step_row *best = NULL;
    const struct tmk_reader *r = a->p->reader;
    if (a->asked.kind == TMK_MOMENT_PEAK)
        return tmk_steps_peak(a->p, a->asked.any_device, a->asked.device);
    for (uint64_t i = 0; a->asked.kind == TMK_MOMENT_STEP && i < tmk_reader_n_step_rows(r); i++) {
        const struct tmk_step_row *row = tmk_reader_step_row(r, i);
        bool fits =
            row->step == a->asked.step && (a->asked.any_device || row->device == a->asked.device);
        if (fits && (!best || row->peak_bytes > best->peak_bytes))
            best = row;
    }
    return best;
}

int tmk_moment_answer_ask(struct tmk_moment_answer *a, const char *option, const char *at,
                          const char *device)
{
    a->asked = (struct tmk_moment){.kind = TMK_MOMENT_PEAK, .any_device = !device};
    if (at && !parse_moment(option, at, a->p, &a->asked))
        return TMK_EXIT_USAGE;
    if (device && !tmk_target_device(a->p, device, &a->asked.device))
        return TMK_EXIT_USAGE;
    /* The device is decided before the sweep, so that a moment is one device's. */
    a->exact = exact_row(a);
    const struct tmk_step_row *row = a->exact ? a->exact : tmk_steps_peak(a->p, true, 0);
    if (a->asked.any_device && row) {
        a->asked.any_device = false;
        a->asked.device = row->device;
    }
    return 0;
}

/* ---- the answer ---- */

static int replay_to_moment(struct tmk_moment_answer *a, struct tmk_error *err)
{
    struct tmk_progress progress;
    struct tmk_replay rp;
    int rc = tmk_peak_open(a->p, &a->asked, &a->peak);
    if (rc < 0)
        return rc;
    tmk_progress_init(&progress, stderr, a->p->file);
    struct tmk_visitor visitor = tmk_peak_visitor(a->peak);
    struct tmk_visitor both[] = {visitor, {.arg = &progress, .progress = tmk_progress_tell}};
    rc = tmk_process_sweep(a->p, both, TMK_N(both), &rp, err);
    tmk_progress_fini(&progress);
    if (rc < 0)
        return rc;
    a->quality = tmk_quality_of(a->p, &rp);
    rc = tmk_peak_finish(a->peak, &rp, err);
    tmk_replay_fini(&rp);
    uint64_t found = tmk_peak_found(a->peak) ? tmk_peak_bytes(a->peak) : 0;
    a->detail_lost = a->exact && a->exact->peak_bytes > found;
    return rc;
}

/* Say why there is nothing to show. */
static int complain_no_moment(const struct tmk_moment_answer *a)
{
    const struct tmk_moment *m = &a->asked;
    char time[TMK_AMOUNT_BYTES];
    if (m->kind == TMK_MOMENT_TIME)
        tmk_say("the detail of that time was given up to stay under --max-size; it begins at %s",
                tmk_time_text(a->quality.detail_from_ns + a->p->offset_ns, time));
    else if (m->kind == TMK_MOMENT_STEP && !a->exact)
        tmk_say("there is no step %" PRId64 " in %s", m->step, a->p->file);
    else
        tmk_say("no block was ever allocated in %s", a->p->file);
    return TMK_EXIT_FINDING;
}

int tmk_moment_answer_sweep(struct tmk_moment_answer *a)
{
    struct tmk_error err = {0};
    int rc = replay_to_moment(a, &err);
    if (rc < 0) {
        tmk_say("%s: %s", a->p->file, err.text[0] ? err.text : tmk_result_text(rc));
        return rc == TMK_ENOMEM ? TMK_EXIT_FINDING : TMK_EXIT_BAD_TRACE;
    }
    return tmk_peak_found(a->peak) || a->detail_lost ? 0 : complain_no_moment(a);
}

void tmk_moment_answer_fini(struct tmk_moment_answer *a)
{
    a->peak = tmk_peak_close(a->peak);
}

void tmk_moment_answer_say_lost(const struct tmk_moment_answer *a)
{
    char kept[TMK_AMOUNT_BYTES], time[TMK_AMOUNT_BYTES];
    const char *why = a->quality.n_given_up ? _("was given up to stay under --max-size")
                                            : _("is in a part of the trace that cannot be read");
    if (!tmk_peak_found(a->peak)) {
        tmk_say("what was alive then %s", why);
        return;
    }
    tmk_say("what was alive then %s; shown is the largest moment that is left, %s after %s", why,
            tmk_size_text(tmk_peak_bytes(a->peak), kept),
            tmk_time_text(tmk_peak_time_ns(a->peak) + a->p->offset_ns, time));
}

uint64_t tmk_moment_answer_bytes(const struct tmk_moment_answer *a)
{
    return a->detail_lost ? a->exact->peak_bytes : tmk_peak_bytes(a->peak);
}

uint64_t tmk_moment_answer_ns(const struct tmk_moment_answer *a)
{
    uint64_t ns = a->detail_lost ? a->exact->peak_ns : tmk_peak_time_ns(a->peak);
    return ns + a->p->offset_ns;
}

int64_t tmk_moment_answer_step(const struct tmk_moment_answer *a)
{
    return a->detail_lost ? a->exact->step : tmk_peak_step(a->peak);
}

uint16_t tmk_moment_answer_device(const struct tmk_moment_answer *a)
{
    return a->exact ? a->exact->device : tmk_peak_device(a->peak);
}

bool tmk_moment_answer_reserved(const struct tmk_moment_answer *a, uint64_t *ret_bytes)
{
    return !a->detail_lost && tmk_peak_reserved(a->peak, ret_bytes);
}
