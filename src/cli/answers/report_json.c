/* SPDX-License-Identifier: MIT */
/* cli/answers/report_json.c - the report for machines. The keys are part of the contract; the notes
 * of cmd_report.c list them. Sizes are in bytes, times in ns since the run's start. */
#include <math.h>

#include "cli/answers/answer_json.h"
#include "cli/answers/explain_answer.h"
#include "cli/answers/frag_answer.h"
#include "cli/answers/health.h"
#include "cli/answers/process_answer.h"
#include "cli/answers/ranks_answer.h"
#include "cli/answers/report_answer.h"
#include "cli/front/refused.h"
#include "cli/output/chart.h"
#include "cli/output/say.h"
#include "forecast/oom_forecast.h"
#include "kit/amount.h"
#include "kit/tree.h"
#include "model/run.h"
#include "passes/accounting.h"
#include "passes/forecast.h"
#include "passes/frag/frag_moment.h"
#include "passes/frag/fragmentation.h"
#include "passes/group.h"
#include "passes/leak/leak.h"
#include "passes/leak/leak_words.h"
#include "passes/leak/leaks.h"
#include "passes/marks.h"
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
#include "trace/stops.h"

enum { MAX_ROWS = 100, MAX_STEPS = 100 };

static void add_peak_by(struct tmk_tree *t, const struct tmk_process_answer *f, const char *key,
                        enum tmk_by by)
{
    const struct tmk_peak_row *rows;
    uint64_t n;
    if (tmk_peak_group(f->peak, by, &rows, &n, NULL) < 0)
        tmk_die("out of memory");
    tmk_answer_put_rows(t, key, rows, n, MAX_ROWS);
}

static void add_kept(struct tmk_tree *t, const struct tmk_process_answer *f)
{
    if (!tmk_tree_object_if(t, "kept", f->detail_lost))
        return;
    tmk_tree_u64(t, "time_ns", tmk_process_answer_run_ns(f, tmk_peak_time_ns(f->peak)));
    tmk_answer_put_step(t, "step", tmk_peak_step(f->peak));
    tmk_tree_u64(t, "allocated", tmk_peak_bytes(f->peak));
    tmk_tree_end(t);
}

static void add_parameters(struct tmk_tree *t, const struct tmk_process_answer *f)
{
    struct tmk_parameters_sum sum = tmk_process_answer_parameters(f);
    if (!tmk_tree_object_if(t, "parameters", sum.n > 0))
        return;
    tmk_tree_u64(t, "count", sum.n);
    tmk_tree_u64(t, "bytes", sum.size_bytes);
    tmk_tree_u64(t, "trained_bytes", sum.trained_bytes);
    tmk_tree_end(t);
}

static void add_peak(struct tmk_tree *t, const struct tmk_process_answer *f)
{
    if (!tmk_tree_object_if(t, "peak", f->has_peak))
        return;
    tmk_tree_u64(t, "time_ns", tmk_process_answer_run_ns(f, f->peak_ns));
    tmk_answer_put_step(t, "step", f->peak_step);
    tmk_tree_u64(t, "allocated", f->peak_bytes);
    tmk_tree_u64_if(t, "reserved", f->has_reserved, f->reserved_bytes);
    tmk_answer_put_device(t, f->device);
    add_kept(t, f);
    add_parameters(t, f);
    add_peak_by(t, f, "by_category", TMK_BY_CATEGORY);
    add_peak_by(t, f, "by_module", TMK_BY_MODULE);
    add_peak_by(t, f, "by_component", TMK_BY_COMPONENT);
    add_peak_by(t, f, "by_stage", TMK_BY_STAGE);
    add_peak_by(t, f, "by_step", TMK_BY_STEP);
    add_peak_by(t, f, "by_tensor", TMK_BY_TENSOR);
    add_peak_by(t, f, "by_line", TMK_BY_SITE);
    tmk_tree_end(t);
}

static void add_timeline(struct tmk_tree *t, const struct tmk_process_answer *f)
{
    const struct tmk_timeline_part *parts = tmk_process_answer_parts(f);
    tmk_tree_list(t, "timeline");
    for (uint32_t i = 0; parts && i < tmk_timeline_n_parts(f->timeline); i++) {
        bool known = tmk_process_answer_part_is_known(f, i);
        tmk_tree_object(t, NULL);
        tmk_tree_u64(t, "start_ns", tmk_process_answer_run_ns(f, parts[i].start_ns));
        tmk_tree_u64(t, "end_ns", tmk_process_answer_run_ns(f, parts[i].end_ns));
        tmk_tree_u64(t, "max_allocated", tmk_process_answer_part_max(f, i));
        tmk_tree_u64_if(t, "min_allocated", known, parts[i].min_bytes);
        tmk_tree_u64_if(t, "end_allocated", known, parts[i].last_bytes);
        tmk_answer_put_step(t, "step", known ? parts[i].step : TMK_NO_STEP);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

static void add_report_step(struct tmk_tree *t, const struct tmk_process_answer *f,
                            const struct tmk_step_row *row)
{
    tmk_tree_object(t, NULL);
    tmk_answer_put_step(t, "step", row->step);
    tmk_tree_u64(t, "start_ns", tmk_process_answer_run_ns(f, row->start_ns));
    tmk_tree_u64(t, "end_ns", tmk_process_answer_run_ns(f, row->end_ns));
    tmk_tree_bool(t, "finished", !row->open);
    tmk_tree_u64(t, "peak_allocated", row->peak_bytes);
    tmk_tree_u64(t, "end_allocated", row->end_bytes);
    tmk_tree_u64(t, "allocations", row->n_allocs);
    tmk_tree_u64(t, "frees", row->n_frees);
    tmk_tree_u64(t, "bytes", row->alloc_bytes);
    tmk_tree_end(t);
}

static void add_report_steps(struct tmk_tree *t, const struct tmk_process_answer *f)
{
    struct tmk_steps_digest d = tmk_steps_digest(f->steps);
    uint64_t picked[MAX_STEPS];
    uint64_t n = tmk_steps_pick(f->steps, MAX_STEPS, picked);
    bool moves = d.trend == TMK_STEPS_TREND_GROWING || d.trend == TMK_STEPS_TREND_SHRINKING;
    tmk_tree_object(t, "steps");
    tmk_tree_u64(t, "count", d.n_steps);
    tmk_tree_u64(t, "mean_ns", d.mean_ns);
    tmk_tree_text(t, "trend", tmk_steps_trend_name(d.trend));
    tmk_tree_double(t, "bytes_per_step", moves ? d.bytes_per_step : NAN);
    tmk_tree_list(t, "rows");
    for (uint64_t i = 0; i < n; i++)
        add_report_step(t, f, tmk_steps_get(f->steps, picked[i]));
    tmk_tree_end(t);
    tmk_tree_end(t);
}

/* Write a site. Where a frame has no file, its line says nothing. */
static void add_site(struct tmk_tree *t, bool is_known, const struct tmk_frame *site)
{
    struct tmk_frame told = is_known ? *site : (struct tmk_frame){0};
    if (!told.file || !told.file[0])
        told = (struct tmk_frame){.function = told.function};
    tmk_answer_put_site(t, is_known, &told);
}

static void add_site_total(struct tmk_tree *t, const struct tmk_site_total *s)
{
    tmk_tree_object(t, NULL);
    add_site(t, s->is_known, &s->site);
    tmk_tree_u64(t, "allocations", s->n_allocs);
    tmk_tree_u64(t, "bytes", s->bytes);
    tmk_tree_u64(t, "live_blocks", s->live_blocks);
    tmk_tree_u64(t, "live_bytes", s->live_bytes);
    tmk_tree_end(t);
}

static void add_sites(struct tmk_tree *t, const struct tmk_process_answer *f)
{
    tmk_tree_list(t, "sites");
    for (uint64_t i = 0; i < tmk_sites_n(f->sites) && i < MAX_ROWS; i++)
        add_site_total(t, tmk_sites_get(f->sites, i));
    tmk_tree_end(t);
}

/* Write the lines with most alive at the end, which are seldom those that allocate most. */
static void add_live_sites(struct tmk_tree *t, const struct tmk_process_answer *f)
{
    uint64_t top[MAX_ROWS];
    uint64_t n = tmk_sites_top_live(f->sites, MAX_ROWS, top);
    tmk_tree_list(t, "live_sites");
    for (uint64_t i = 0; i < n; i++)
        add_site_total(t, tmk_sites_get(f->sites, top[i]));
    tmk_tree_end(t);
}

static void add_holders(struct tmk_tree *t, const struct tmk_process_answer *f, uint64_t i,
                        const char *key, enum tmk_by by)
{
    const struct tmk_peak_row *rows;
    uint64_t n;
    if (tmk_ooms_holders(f->ooms, i, by, &rows, &n) < 0)
        tmk_die("out of memory");
    tmk_answer_put_rows(t, key, rows, n, MAX_ROWS);
}

static void add_report_oom(struct tmk_tree *t, const struct tmk_process_answer *f, uint64_t i)
{
    const struct tmk_oom *o = tmk_ooms_get(f->ooms, i);
    tmk_tree_object(t, NULL);
    tmk_tree_u64(t, "time_ns", tmk_process_answer_run_ns(f, o->time_ns));
    tmk_answer_put_step(t, "step", o->step);
    tmk_answer_put_device(t, o->device);
    tmk_tree_u64(t, "request_bytes", o->requested_bytes);
    tmk_tree_u64(t, "allocated", o->allocated_bytes);
    tmk_tree_u64_if(t, "capacity", o->capacity_bytes > 0, o->capacity_bytes);
    add_site(t, o->has_site, &o->site);
    tmk_tree_text(t, "module", o->module);
    tmk_tree_text(t, "stage", o->stage);
    tmk_tree_text(t, "source", o->is_of_driver ? "driver" : "allocator");
    tmk_tree_bytes(t, "segments",
                   o->device == TIDEMARK_HOST ? TMK_BYTES_UNKNOWN : o->segment_bytes);
    tmk_tree_bytes(t, "device_used", o->used_bytes);
    tmk_tree_bytes(t, "device_total", o->total_bytes);
    add_holders(t, f, i, "by_category", TMK_BY_CATEGORY);
    add_holders(t, f, i, "by_module", TMK_BY_MODULE);
    add_holders(t, f, i, "by_line", TMK_BY_SITE);
    tmk_tree_end(t);
}

static void add_ooms(struct tmk_tree *t, const struct tmk_process_answer *f)
{
    tmk_tree_u64(t, "oom_count", tmk_ooms_n(f->ooms));
    tmk_tree_list(t, "ooms");
    for (uint64_t i = 0; i < tmk_ooms_n_kept(f->ooms); i++)
        add_report_oom(t, f, i);
    tmk_tree_end(t);
}

/* ---- what the driver told ---- */

static void add_report_account(struct tmk_tree *t, const struct tmk_process_answer *f,
                               const struct tmk_device_account *a)
{
    tmk_tree_object(t, NULL);
    tmk_answer_put_device(t, a->device);
    tmk_tree_text(t, "moment", a->is_peak ? "peak" : "last");
    tmk_tree_u64(t, "time_ns", a->time_ns + f->p->offset_ns);
    tmk_tree_bytes(t, "total", a->total_bytes);
    tmk_tree_bytes(t, "used", a->used_bytes);
    tmk_tree_list(t, "segments");
    for (uint64_t i = 0; i < a->n_parts; i++) {
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "owner", a->parts[i].owner);
        tmk_tree_u64(t, "bytes", a->parts[i].bytes);
        tmk_tree_u64(t, "segments", a->parts[i].n_segments);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
    tmk_tree_bytes(t, "context", a->context_bytes);
    tmk_tree_bytes(t, "others", a->others_bytes);
    tmk_tree_bytes(t, "unexplained", a->unexplained_bytes);
    tmk_tree_u64(t, "allocated", a->allocated_bytes);
    tmk_tree_bytes(t, "reserved", a->has_reserved ? a->reserved_bytes : TMK_BYTES_UNKNOWN);
    tmk_tree_end(t);
}

static void add_accounting(struct tmk_tree *t, const struct tmk_process_answer *f)
{
    tmk_tree_list(t, "accounting");
    for (uint64_t i = 0; i < tmk_accounting_n(f->accounting); i++)
        add_report_account(t, f, tmk_accounting_get(f->accounting, i));
    tmk_tree_end(t);
}

/* ---- what grows, what is held ---- */

static void add_report_leak(struct tmk_tree *t, const struct tmk_process *p,
                            const struct tmk_leak *leak)
{
    bool has_steps = leak->first_step != TMK_NO_STEP;
    tmk_tree_object(t, NULL);
    tmk_answer_put_site(t, leak->has_site, &leak->site);
    tmk_tree_text(t, "category", tmk_category_name(leak->category));
    tmk_tree_text(t, "module", leak->module);
    tmk_tree_double(t, "bytes_per_step", has_steps ? leak->bytes_per_step : NAN);
    tmk_tree_double(t, "blocks_per_step", has_steps ? leak->blocks_per_step : NAN);
    tmk_answer_put_step(t, "first_step", leak->first_step);
    tmk_tree_double(t, "confidence", leak->confidence);
    tmk_tree_u64(t, "growth_bytes", leak->bytes);
    tmk_answer_put_device(t, leak->device);
    tmk_tree_text(t, "kept_by", tmk_keeper_name(leak->keeper));
    tmk_tree_double(t, "bytes_per_second", leak->bytes_per_second);
    tmk_answer_put_evidence(t, p, leak);
    tmk_tree_end(t);
}

static void add_report_leaks(struct tmk_tree *t, const struct tmk_process_answer *f)
{
    static const char *const verdicts[] = {
        [TMK_LEAK_CLEAN] = "clean", [TMK_LEAK_FOUND] = "leak", [TMK_LEAK_TOO_SHORT] = NULL};
    tmk_tree_text(t, "leak_verdict", verdicts[tmk_leakage_verdict(f->leakage)]);
    tmk_tree_list(t, "leaks");
    for (uint64_t i = 0; i < tmk_leakage_n(f->leakage); i++)
        add_report_leak(t, f->p, tmk_leakage_get(f->leakage, i));
    tmk_tree_end(t);
    tmk_tree_list(t, "not_judged");
    for (uint64_t i = 0; i < tmk_leakage_n_doubts(f->leakage); i++) {
        tmk_tree_object(t, NULL);
        tmk_answer_put_doubt(t, tmk_leakage_doubt(f->leakage, i));
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
    char words[TMK_LEAK_WORDS_BYTES];
    enum tmk_steps_trend trend = tmk_steps_digest(f->steps).trend;
    tmk_tree_text(t, "leak_text", tmk_leakage_text(f->leakage, trend, words));
}

static void add_fragmentation(struct tmk_tree *t, const struct tmk_process_answer *f)
{
    tmk_tree_list(t, "fragmentation");
    for (uint64_t i = 0; i < tmk_fragmentation_n(f->frag); i++) {
        const struct tmk_frag_device *d = tmk_fragmentation_get(f->frag, i);
        tmk_tree_object(t, NULL);
        tmk_answer_put_device(t, d->device);
        tmk_tree_u64(t, "time_ns", d->time_ns + f->p->offset_ns);
        tmk_answer_put_step(t, "step", d->step);
        tmk_tree_bytes(t, "reserved", d->sum.reserved_bytes);
        tmk_tree_bytes(t, "allocated", d->sum.allocated_bytes);
        tmk_tree_bytes(t, "free", d->sum.free_bytes);
        tmk_tree_bytes(t, "largest_free", d->sum.largest_bytes);
        tmk_tree_bytes(t, "largest_allocatable", d->sum.allocatable_bytes);
        tmk_tree_bytes(t, "releasable", d->sum.whole_bytes);
        tmk_tree_bytes(t, "pinned_segments",
                       d->has_segments ? tmk_fragmentation_pinned(f->frag, i, NULL, 0)
                                       : TMK_BYTES_UNKNOWN);
        tmk_tree_text(t, "moment", tmk_frag_moment_name(TMK_FRAG_WORST, d));
        tmk_tree_u64_if(t, "free_blocks", d->has_segments, d->sum.n_free);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

static void add_report_forecast(struct tmk_tree *t, const struct tmk_process_answer *f)
{
    const struct tmk_forecast *c = &f->forecast;
    if (!tmk_tree_object_if(t, "forecast", c->risk != TMK_RISK_UNKNOWN))
        return;
    tmk_answer_put_device(t, c->device);
    tmk_tree_text(t, "risk", tmk_risk_text(c->risk));
    tmk_tree_double(t, "seconds_to_oom", c->has_time ? c->seconds_to_oom : NAN);
    tmk_tree_double(t, "seconds_low", c->has_time ? c->seconds_low : NAN);
    tmk_tree_double(t, "seconds_high", c->has_time ? c->seconds_high : NAN);
    tmk_tree_double(t, "steps_to_oom",
                    c->has_time && c->by_step ? ceil(c->steps_to_oom - 1e-6) : NAN);
    tmk_tree_double(t, "confidence", c->has_confidence ? c->confidence : NAN);
    tmk_tree_text(t, "cause", tmk_growth_cause_name(c->cause));
    tmk_tree_u64(t, "capacity", c->capacity_bytes);
    tmk_tree_list(t, "advice");
    const char *advice;
    for (unsigned i = 0; (advice = tmk_growth_cause_advice(c->cause, c->risk, i)) != NULL; i++)
        tmk_tree_text(t, NULL, advice);
    tmk_tree_end(t);
    tmk_tree_end(t);
}

/* ---- the rest ---- */

static void add_marks(struct tmk_tree *t, const struct tmk_process_answer *f)
{
    tmk_tree_u64(t, "mark_count", tmk_marks_n(f->marks));
    tmk_tree_list(t, "marks");
    for (uint64_t i = 0; i < tmk_marks_n_kept(f->marks) && i < MAX_ROWS; i++) {
        const struct tmk_mark *m = tmk_marks_get(f->marks, i);
        tmk_tree_object(t, NULL);
        tmk_tree_u64(t, "time_ns", tmk_process_answer_run_ns(f, m->time_ns));
        tmk_answer_put_step(t, "step", m->step);
        tmk_tree_text(t, "name", m->name);
        tmk_tree_text(t, "text", m->text);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

static void add_report_sentence(void *arg, const char *text)
{
    tmk_tree_text(arg, NULL, text);
}

static void add_quality(struct tmk_tree *t, const struct tmk_process_answer *f)
{
    const struct tmk_quality *q = &f->quality;
    tmk_tree_object(t, "quality");
    tmk_tree_bool(t, "complete", tmk_quality_is_good(q));
    tmk_tree_bool(t, "live", q->live);
    tmk_tree_bool(t, "merged", q->merged);
    tmk_tree_bool(t, "unfinished", q->unfinished);
    tmk_tree_text(t, "stopped", q->stop == TMK_STOP_NONE ? NULL : tmk_stop_text(q->stop));
    tmk_tree_u64(t, "dropped", q->n_dropped);
    tmk_tree_u64(t, "given_up", q->n_given_up);
    tmk_tree_u64(t, "detail_from_ns",
                 q->n_given_up ? tmk_process_answer_run_ns(f, q->detail_from_ns) : 0);
    tmk_tree_u64(t, "untracked", q->n_untracked);
    tmk_tree_u64(t, "without_details", q->n_without_details);
    tmk_tree_u64(t, "unnamed", q->n_unnamed);
    tmk_tree_u64(t, "replaced", q->n_replaced);
    tmk_tree_u64(t, "unknown_frees", q->n_unknown_free);
    tmk_tree_u64(t, "lost_segments", q->n_lost_segments);
    tmk_tree_u64(t, "damaged_chunks", q->n_bad_chunks);
    tmk_tree_u64(t, "stray_bytes", q->n_stray_bytes);
    tmk_tree_bool(t, "header_damaged", q->header_damaged);
    tmk_tree_list(t, "doubts");
    tmk_process_answer_doubts(f, add_report_sentence, t);
    tmk_tree_end(t);
    tmk_tree_end(t);
}

static void add_health(struct tmk_tree *t, const struct tmk_health *h)
{
    tmk_tree_object(t, "health");
    tmk_tree_text(t, "verdict", tmk_health_name(h->kind));
    tmk_tree_text(t, "text", h->text);
    tmk_tree_text(t, "next", h->next);
    tmk_tree_end(t);
}

static void add_report_process(struct tmk_tree *t, const struct tmk_process_answer *f)
{
    const struct tmk_process *p = f->p;
    tmk_tree_object(t, NULL);
    tmk_tree_text(t, "file", p->file);
    tmk_answer_put_pid(t, p);
    tmk_answer_put_rank(t, p);
    tmk_tree_number(t, "world_size", p->world_size);
    tmk_tree_label(t, "host", p->host);
    tmk_tree_label(t, "command", p->command);
    tmk_tree_u64(t, "start_ns", tmk_process_answer_run_ns(f, 0));
    tmk_tree_u64(t, "end_ns", tmk_process_answer_run_ns(f, p->end_ns));
    tmk_tree_u64(t, "trace_bytes", tmk_reader_file_bytes(p->reader));
    tmk_tree_u64(t, "events", f->n_events);
    tmk_tree_u64(t, "allocations", f->n_allocs);
    tmk_tree_u64(t, "frees", f->n_frees);
    tmk_tree_u64(t, "live_blocks", f->n_live);
    tmk_tree_u64(t, "live_bytes", f->live_bytes);
    add_peak(t, f);
    add_timeline(t, f);
    add_report_steps(t, f);
    add_report_forecast(t, f);
    add_sites(t, f);
    add_ooms(t, f);
    add_accounting(t, f);
    add_report_leaks(t, f);
    add_fragmentation(t, f);
    add_marks(t, f);
    add_quality(t, f);
    add_live_sites(t, f);
    tmk_tree_end(t);
}

/* Write why the chosen process ran out of memory. Explaining takes more sweeps, so the others are
 * left out. */
static void add_explanation(struct tmk_tree *t, const struct tmk_report_answer *r)
{
    struct tmk_explain_process chosen = {r->about.p, r->explanation};
    struct tmk_explain_answer answer = {.run = r->run, .processes = &chosen, .n = 1};
    if (r->explanation)
        tmk_explain_json(&answer, t, "explain");
    else
        tmk_tree_unknown(t, "explain");
}

/* Write all about each process. A process is swept, written and forgotten before the next. */
static int add_report_processes(struct tmk_tree *t, const struct tmk_report_answer *r,
                                bool is_chosen_only)
{
    int status = 0;
    tmk_tree_list(t, "processes");
    for (uint32_t i = 0; i < r->n; i++) {
        struct tmk_process_answer f;
        if (i == r->chosen) {
            add_report_process(t, &r->about);
            continue;
        }
        if (is_chosen_only)
            continue;
        int failed = tmk_process_answer_init(&f, tmk_run_process(r->run, i), TMK_CHART_COLUMNS);
        if (failed == 0)
            add_report_process(t, &f);
        else
            status = failed;
        tmk_process_answer_fini(&f);
    }
    tmk_tree_end(t);
    return status;
}

static int put_report(const struct tmk_report_answer *r, struct tmk_tree *t, const char *key,
                      bool is_chosen_only)
{
    const struct tmk_process *first = tmk_run_process(r->run, 0);
    char date[32];
    tmk_tree_object(t, key);
    tmk_tree_text(t, "run", tmk_run_path(r->run));
    tmk_tree_text(t, "tidemark", TMK_VERSION);
    tmk_tree_text(t, "started_utc",
                  tmk_date_text(first->start_realtime_ns - first->offset_ns, date));
    tmk_tree_u64(t, "duration_ns", tmk_report_answer_end_ns(r));
    tmk_tree_u64(t, "chosen", is_chosen_only ? 0 : r->chosen);
    tmk_ranks_json(r->ranks, r->run, t);
    int status = add_report_processes(t, r, is_chosen_only);
    tmk_tree_list(t, "not_recorded");
    tmk_refused_each(tmk_run_path(r->run), r->run, add_report_sentence, t);
    tmk_tree_end(t);
    add_explanation(t, r);
    add_health(t, &r->health);
    tmk_tree_end(t);
    return status;
}

int tmk_report_json(const struct tmk_report_answer *r, struct tmk_tree *t)
{
    return put_report(r, t, NULL, false);
}

int tmk_report_json_chosen(const struct tmk_report_answer *r, struct tmk_tree *t, const char *key)
{
    return put_report(r, t, key, true);
}
