/* SPDX-License-Identifier: MIT */
/* cli/answers/process_answer.c - see process_answer.h. */
#include "cli/answers/process_answer.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli/output/say.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/progress.h"
#include "model/owners.h"
#include "passes/forecast_samples.h"
#include "passes/frag/frag_moment.h"
#include "passes/leak/leak_cause.h"
#include "passes/leak/leaks.h"
#include "trace/defs.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"
#include "trace/stops.h"

/* ---- gathering ---- */

static int open_passes(struct tmk_process_answer *f, uint32_t n_parts)
{
    const struct tmk_step_row *row = tmk_steps_peak(f->p, true, 0);
    struct tmk_moment moment = {
        .kind = TMK_MOMENT_PEAK, .any_device = !row, .device = row ? row->device : 0};
    int rc = tmk_peak_open(f->p, &moment, &f->peak);
    if (rc == 0)
        rc = tmk_timeline_open(0, f->p->end_ns, n_parts, &f->timeline);
    if (rc == 0)
        rc = tmk_sites_open(f->p, &f->sites);
    if (rc == 0)
        rc = tmk_ooms_open(f->p, &f->ooms);
    if (rc == 0)
        rc = tmk_accounting_open(f->p, &f->accounting);
    if (rc == 0)
        rc = tmk_leakage_open(f->p, TMK_LEAK_DEFAULT_BYTES, &f->leakage);
    if (rc == 0)
        rc = tmk_fragmentation_open(f->p, &(struct tmk_frag_moment){.kind = TMK_FRAG_WORST},
                                    &f->frag);
    if (rc == 0)
        rc = tmk_forecast_samples_open(&f->samples);
    return rc == 0 ? tmk_marks_open(f->p, &f->marks) : rc;
}

static int finish_passes(struct tmk_process_answer *f, const struct tmk_replay *rp,
                         struct tmk_error *err)
{
    int rc = tmk_peak_finish(f->peak, rp, err);
    if (rc == 0)
        rc = tmk_timeline_finish(f->timeline);
    if (rc == 0)
        rc = tmk_sites_finish(f->sites, rp, err);
    if (rc == 0)
        rc = tmk_ooms_finish(f->ooms, err);
    if (rc == 0)
        rc = tmk_accounting_finish(f->accounting, rp, err);
    if (rc == 0)
        rc = tmk_leakage_finish(f->leakage, rp, err);
    if (rc == 0)
        rc = tmk_fragmentation_finish(f->frag, rp, err);
    return rc == 0 ? tmk_marks_finish(f->marks, err) : rc;
}

static uint64_t larger_bytes(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void take_process_totals(struct tmk_process_answer *f, const struct tmk_replay *rp)
{
    const struct tmk_status *status = tmk_reader_status(f->p->reader);
    const struct tmk_state *s = &rp->state;
    f->n_events = larger_bytes(s->n_events, status->n_events);
    f->n_allocs = larger_bytes(s->n_allocs, status->n_allocs);
    f->n_frees = larger_bytes(s->n_frees, status->n_frees);
    f->n_live = s->n_live + s->n_outside;
    for (uint32_t i = 0; i < s->n_devices; i++)
        f->live_bytes += s->devices[i].allocated_bytes;
    f->quality = tmk_quality_of(f->p, rp);
}

static void take_peak(struct tmk_process_answer *f)
{
    const struct tmk_step_row *row = tmk_steps_peak(f->p, true, 0);
    uint64_t found = tmk_peak_found(f->peak) ? tmk_peak_bytes(f->peak) : 0;
    f->has_peak = row || tmk_peak_found(f->peak);
    f->detail_lost = row && row->peak_bytes > found;
    f->device = row ? row->device : tmk_peak_device(f->peak);
    f->peak_bytes = f->detail_lost ? row->peak_bytes : found;
    f->peak_ns = f->detail_lost ? row->peak_ns : tmk_peak_time_ns(f->peak);
    f->peak_step = f->detail_lost ? row->step : tmk_peak_step(f->peak);
    f->has_reserved = !f->detail_lost && tmk_peak_reserved(f->peak, &f->reserved_bytes);
}

static int sweep_process(struct tmk_process_answer *f, struct tmk_error *err)
{
    struct tmk_progress progress;
    const struct tmk_visitor visitors[] = {
        tmk_peak_visitor(f->peak),
        tmk_timeline_visitor(f->timeline),
        tmk_sites_visitor(f->sites),
        tmk_ooms_visitor(f->ooms),
        tmk_marks_visitor(f->marks),
        tmk_accounting_visitor(f->accounting),
        tmk_leakage_visitor(f->leakage),
        tmk_fragmentation_visitor(f->frag),
        tmk_forecast_samples_visitor(f->samples),
        {.arg = &progress, .progress = tmk_progress_tell},
    };
    struct tmk_replay rp;
    tmk_progress_init(&progress, stderr, f->p->file);
    int rc = tmk_process_sweep(f->p, visitors, sizeof visitors / sizeof *visitors, &rp, err);
    tmk_progress_fini(&progress);
    if (rc < 0)
        return rc;
    rc = finish_passes(f, &rp, err);
    if (rc == 0) {
        take_process_totals(f, &rp);
        take_peak(f);
        rc = tmk_steps_open(f->p, f->device, &f->steps);
    }
    if (rc == 0)
        rc = tmk_forecast_of(f->p, f->device, f->samples, &f->forecast);
    if (rc == 0)
        tmk_leak_settle_cause(f->leakage, &f->forecast);
    tmk_replay_fini(&rp);
    return rc;
}

int tmk_process_answer_init(struct tmk_process_answer *f, struct tmk_process *p, uint32_t n_parts)
{
    struct tmk_error err = {0};
    *f = (struct tmk_process_answer){.p = p};
    int rc = open_passes(f, n_parts);
    if (rc == 0)
        rc = sweep_process(f, &err);
    if (rc == 0)
        return 0;
    tmk_say("%s: %s", p->file, err.text[0] ? err.text : tmk_result_text(rc));
    return rc == TMK_ENOMEM ? TMK_EXIT_FINDING : TMK_EXIT_BAD_TRACE;
}

void tmk_process_answer_fini(struct tmk_process_answer *f)
{
    f->peak = tmk_peak_close(f->peak);
    f->timeline = tmk_timeline_close(f->timeline);
    f->sites = tmk_sites_close(f->sites);
    f->ooms = tmk_ooms_close(f->ooms);
    f->marks = tmk_marks_close(f->marks);
    f->accounting = tmk_accounting_close(f->accounting);
    f->leakage = tmk_leakage_close(f->leakage);
    f->frag = tmk_fragmentation_close(f->frag);
    f->steps = tmk_steps_close(f->steps);
    f->samples = tmk_forecast_samples_close(f->samples);
}

/* ---- asking ---- */

uint64_t tmk_process_answer_run_ns(const struct tmk_process_answer *f, uint64_t trace_ns)
{
    return trace_ns + f->p->offset_ns;
}

const struct tmk_timeline_part *tmk_process_answer_parts(const struct tmk_process_answer *f)
{
    for (uint32_t i = 0; i < tmk_timeline_n_devices(f->timeline); i++)
        if (tmk_timeline_device(f->timeline, i) == f->device)
            return tmk_timeline_parts(f->timeline, i);
    return NULL;
}

bool tmk_process_answer_part_is_known(const struct tmk_process_answer *f, uint32_t part)
{
    const struct tmk_timeline_part *parts = tmk_process_answer_parts(f);
    return parts && parts[part].start_ns >= tmk_timeline_known_ns(f->timeline);
}

uint64_t tmk_process_answer_part_max(const struct tmk_process_answer *f, uint32_t part)
{
    const struct tmk_timeline_part *t = &tmk_process_answer_parts(f)[part];
    uint64_t most = t->max_bytes;
    if (tmk_process_answer_part_is_known(f, part))
        return most;
    const struct tmk_reader *r = f->p->reader;
    for (uint64_t i = 0; i < tmk_reader_n_step_rows(r); i++) {
        const struct tmk_step_row *row = tmk_reader_step_row(r, i);
        bool touches = row->start_ns < t->end_ns && row->end_ns >= t->start_ns;
        if (row->device == f->device && touches && row->peak_bytes > most)
            most = row->peak_bytes;
    }
    return most;
}

/* ---- doubts ---- */

struct listener {
    void (*sentence)(void *arg, const char *text);
    void *arg;
    unsigned n;
};

__attribute__((format(printf, 2, 3))) static void tell_doubt(struct listener *l, const char *format,
                                                             ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, _(format), args);
    va_end(args);
    l->sentence(l->arg, text);
    l->n++;
}

static void doubt_end(const struct tmk_process_answer *f, struct listener *l)
{
    const struct tmk_quality *q = &f->quality;
    char time[TMK_AMOUNT_BYTES];
    tmk_time_text(f->p->end_ns + f->p->offset_ns, time);
    if (q->stop == TMK_STOP_WRITE_ERROR && q->stop_os_error)
        tell_doubt(l, "Recording stopped after %s: %s (%s).", time, _(tmk_stop_text(q->stop)),
                   strerror(q->stop_os_error));
    else if (q->stop != TMK_STOP_NONE)
        tell_doubt(l, "Recording stopped after %s: %s.", time, _(tmk_stop_text(q->stop)));
    else if (q->unfinished)
        tell_doubt(l, "The trace was not closed and %s. Nothing is known after %s.",
                   tmk_quality_ring_text(f->p), time);
}

static void doubt_losses(const struct tmk_quality *q, struct listener *l)
{
    const struct {
        uint64_t count;
        const char *one, *several;
    } losses[] = {
        {q->n_dropped, N_("event was dropped: events came faster than they could be packed."),
         N_("events were dropped: they came faster than they could be packed.")},
        {q->n_untracked,
         N_("block was not followed: more were alive at once than we keep. Bytes allocated are "
            "upper "
            "bounds from then on."),
         N_("blocks were not followed: more were alive at once than we keep. Bytes allocated are "
            "upper bounds from then on.")},
        {q->n_without_details,
         N_("block alive at the end is without details: when and where it was allocated is no "
            "longer "
            "in the trace."),
         N_("blocks alive at the end are without details: when and where they were allocated is no "
            "longer in the trace.")},
        {q->n_unnamed,
         N_("time a name, stack or stream was left out: there were more different ones than the "
            "recorder keeps."),
         N_("times a name, stack or stream was left out: there were more different ones than the "
            "recorder keeps.")},
        {q->n_replaced, N_("free was not reported: the address was simply handed out again."),
         N_("frees were not reported: the address was simply handed out again.")},
        {q->n_unknown_free, N_("free was of a block that was never seen allocated."),
         N_("frees were of blocks that were never seen allocated.")},
        {q->n_lost_segments, N_("segment was not followed: more existed at once than we keep."),
         N_("segments were not followed: more existed at once than we keep.")},
    };
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        char count[TMK_AMOUNT_BYTES];
        if (losses[i].count > 0)
            tell_doubt(l, "%s %s", tmk_count_text(losses[i].count, count),
                       _(losses[i].count == 1 ? losses[i].one : losses[i].several));
    }
}

static void doubt_damage(const struct tmk_quality *q, struct listener *l)
{
    if (q->n_bad_chunks > 0)
        tell_doubt(
            l, "The file is damaged: %" PRIu32 " part%s of it could not be read and %s left out.",
            q->n_bad_chunks, q->n_bad_chunks == 1 ? "" : "s", q->n_bad_chunks == 1 ? "is" : "are");
    if (q->n_stray_bytes > 0)
        tell_doubt(l, "The file is damaged: %" PRIu64 " byte%s of it belong%s to no part.",
                   q->n_stray_bytes, q->n_stray_bytes == 1 ? "" : "s",
                   q->n_stray_bytes == 1 ? "s" : "");
    if (q->header_damaged)
        tell_doubt(l,
                   "The file's header is damaged: name of the program or totals may be missing.");
}

/* Tell the doubts that the recorder itself noted. */
static void doubt_stacks(const struct tmk_process_answer *f, struct listener *l)
{
    static const char *const events[] = {"no Python stacks", "stacks no longer recorded"};
    for (uint64_t i = 0; i < tmk_marks_n_kept(f->marks); i++) {
        const struct tmk_mark *m = tmk_marks_get(f->marks, i);
        for (size_t k = 0; m->name && k < sizeof events / sizeof events[0]; k++)
            if (strcmp(m->name, events[k]) == 0)
                tell_doubt(l, "Blocks have no allocation site (%s): %s.", m->name, m->text);
    }
}

/* Tell what a snapshot of torch's lacks: it has less than a trace. */
static void doubt_import(const struct tmk_process_answer *f, struct listener *l)
{
    const char *older = tmk_reader_info(f->p->reader, "older_blocks");
    if (!tmk_reader_info(f->p->reader, "imported"))
        return;
    tell_doubt(
        l, "Imported from a torch snapshot: blocks of torch's allocator on its devices, without "
           "steps, stages, modules or categories (docs/snapshots.md).");
    if (older && strcmp(older, "0") != 0)
        tell_doubt(l,
                   "The history lacks its beginning: %s blocks are older than its first event. A "
                   "peak before "
                   "that is not known.",
                   older);
}

unsigned tmk_process_answer_doubts(const struct tmk_process_answer *f,
                                   void (*sentence)(void *arg, const char *text), void *arg)
{
    const struct tmk_quality *q = &f->quality;
    struct listener l = {.sentence = sentence, .arg = arg};
    char count[TMK_AMOUNT_BYTES], time[TMK_AMOUNT_BYTES];
    doubt_end(f, &l);
    doubt_import(f, &l);
    if (q->n_given_up > 0)
        tell_doubt(
            &l,
            "To stay under --max-size the oldest %s events were given up: detail begins at %s. "
            "Totals and the history of steps are whole.",
            tmk_count_text(q->n_given_up, count),
            tmk_time_text(q->detail_from_ns + f->p->offset_ns, time));
    doubt_losses(q, &l);
    doubt_damage(q, &l);
    doubt_stacks(f, &l);
    return l.n;
}

struct tmk_parameters_sum tmk_process_answer_parameters(const struct tmk_process_answer *f)
{
    struct tmk_parameters_sum sum = {0};
    for (uint32_t i = 0; i < tmk_parameters_n(f->p); i++) {
        const struct tmk_parameter *parameter = tmk_parameter_get(f->p, i);
        if (parameter->device != f->device ||
            parameter->flags & (TMK_PARAMETER_IS_BUFFER | TMK_PARAMETER_IS_TIED))
            continue;
        sum.n++;
        sum.size_bytes += parameter->size_bytes;
        if (parameter->flags & TMK_PARAMETER_OPTIMIZED)
            sum.trained_bytes += parameter->size_bytes;
    }
    return sum;
}
