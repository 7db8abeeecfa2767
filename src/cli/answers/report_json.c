/* SPDX-License-Identifier: MIT */
/* cli/answers/report_json.c - the report for machines; the keys are part of the contract and are
 * listed in the notes of cmd_report.c. Sizes in bytes, times in ns since the run's start, unknown
 * is null. */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/answers/report.h"
#include "cli/front/refused.h"
#include "cli/output/say.h"
#include "tidemark/tidemark.h"
#include "trace/stops.h"

enum { MAX_ROWS = 100, MAX_STEPS = 100 };

static uint64_t run_time(const struct tmk_facts *f, uint64_t trace_ns)
{
    return trace_ns + f->p->offset_ns;
}

static void add_step(struct tmk_tree *t, const char *key, int64_t step)
{
    if (step == TMK_NO_STEP)
        tmk_tree_null(t, key);
    else
        tmk_tree_i64(t, key, step);
}

static void add_device(struct tmk_tree *t, uint16_t device)
{
    char name[24];
    tmk_tree_text(t, "device", tmk_device_name(device, name));
}

static void add_rows(struct tmk_tree *t, const char *key, const struct tmk_peak_row *rows,
                     uint64_t n)
{
    tmk_tree_list(t, key);
    for (uint64_t i = 0; i < n && i < MAX_ROWS; i++) {
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "key", rows[i].key);
        tmk_tree_u64(t, "bytes", rows[i].bytes);
        tmk_tree_u64(t, "blocks", rows[i].n_blocks);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

static void add_peak_by(struct tmk_tree *t, const struct tmk_facts *f, const char *key,
                        enum tmk_by by)
{
    const struct tmk_peak_row *rows;
    uint64_t n;
    if (tmk_peak_group(f->peak, by, &rows, &n, NULL) < 0)
        tmk_die("out of memory");
    add_rows(t, key, rows, n);
}

static void add_kept(struct tmk_tree *t, const struct tmk_facts *f)
{
    if (!f->detail_lost) {
        tmk_tree_null(t, "kept");
        return;
    }
    tmk_tree_object(t, "kept");
    tmk_tree_u64(t, "time_ns", run_time(f, tmk_peak_time_ns(f->peak)));
    add_step(t, "step", tmk_peak_step(f->peak));
    tmk_tree_u64(t, "allocated", tmk_peak_bytes(f->peak));
    tmk_tree_end(t);
}

static void add_parameters(struct tmk_tree *t, const struct tmk_facts *f)
{
    struct tmk_parameters_sum sum = tmk_facts_parameters(f);
    if (sum.n == 0) {
        tmk_tree_null(t, "parameters");
        return;
    }
    tmk_tree_object(t, "parameters");
    tmk_tree_u64(t, "count", sum.n);
    tmk_tree_u64(t, "bytes", sum.size_bytes);
    tmk_tree_u64(t, "trained_bytes", sum.trained_bytes);
    tmk_tree_end(t);
}

static void add_peak(struct tmk_tree *t, const struct tmk_facts *f)
{
    if (!f->has_peak) {
        tmk_tree_null(t, "peak");
        return;
    }
    tmk_tree_object(t, "peak");
    tmk_tree_u64(t, "time_ns", run_time(f, f->peak_ns));
    add_step(t, "step", f->peak_step);
    tmk_tree_u64(t, "allocated", f->peak_bytes);
    if (f->has_reserved)
        tmk_tree_u64(t, "reserved", f->reserved_bytes);
    else
        tmk_tree_null(t, "reserved");
    add_device(t, f->device);
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

static void add_timeline(struct tmk_tree *t, const struct tmk_facts *f)
{
    const struct tmk_timeline_part *parts = tmk_facts_parts(f);
    tmk_tree_list(t, "timeline");
    for (uint32_t i = 0; parts && i < tmk_timeline_n_parts(f->timeline); i++) {
        bool known = tmk_facts_part_is_known(f, i);
        tmk_tree_object(t, NULL);
        tmk_tree_u64(t, "start_ns", run_time(f, parts[i].start_ns));
        tmk_tree_u64(t, "end_ns", run_time(f, parts[i].end_ns));
        tmk_tree_u64(t, "max_allocated", tmk_facts_part_max(f, i));
        if (known) {
            tmk_tree_u64(t, "min_allocated", parts[i].min_bytes);
            tmk_tree_u64(t, "end_allocated", parts[i].last_bytes);
            add_step(t, "step", parts[i].step);
        } else {
            tmk_tree_null(t, "min_allocated");
            tmk_tree_null(t, "end_allocated");
            tmk_tree_null(t, "step");
        }
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

static void add_step_row(struct tmk_tree *t, const struct tmk_facts *f,
                         const struct tmk_step_row *row)
{
    tmk_tree_object(t, NULL);
    add_step(t, "step", row->step);
    tmk_tree_u64(t, "start_ns", run_time(f, row->start_ns));
    tmk_tree_u64(t, "end_ns", run_time(f, row->end_ns));
    tmk_tree_bool(t, "finished", !row->open);
    tmk_tree_u64(t, "peak_allocated", row->peak_bytes);
    tmk_tree_u64(t, "end_allocated", row->end_bytes);
    tmk_tree_u64(t, "allocations", row->n_allocs);
    tmk_tree_u64(t, "frees", row->n_frees);
    tmk_tree_u64(t, "bytes", row->alloc_bytes);
    tmk_tree_end(t);
}

static void add_steps(struct tmk_tree *t, const struct tmk_facts *f)
{
    struct tmk_steps_digest d = tmk_steps_digest(f->steps);
    uint64_t picked[MAX_STEPS];
    uint64_t n = tmk_steps_pick(f->steps, MAX_STEPS, picked);
    bool moves = d.trend == TMK_STEPS_TREND_GROWING || d.trend == TMK_STEPS_TREND_SHRINKING;
    tmk_tree_object(t, "steps");
    tmk_tree_u64(t, "count", d.n_steps);
    tmk_tree_u64(t, "mean_ns", d.mean_ns);
    tmk_tree_text(t, "trend", tmk_steps_trend_name(d.trend));
    if (moves)
        tmk_tree_double(t, "bytes_per_step", d.bytes_per_step);
    else
        tmk_tree_null(t, "bytes_per_step");
    tmk_tree_list(t, "rows");
    for (uint64_t i = 0; i < n; i++)
        add_step_row(t, f, tmk_steps_get(f->steps, picked[i]));
    tmk_tree_end(t);
    tmk_tree_end(t);
}

static void add_site(struct tmk_tree *t, bool known, const struct tmk_frame *site)
{
    bool has_file = known && site->file && site->file[0];
    tmk_tree_text(t, "file", has_file ? site->file : NULL);
    if (has_file && site->line)
        tmk_tree_u64(t, "line", site->line);
    else
        tmk_tree_null(t, "line");
    tmk_tree_text(t, "function", known ? site->function : NULL);
}

static void add_sites(struct tmk_tree *t, const struct tmk_facts *f)
{
    tmk_tree_list(t, "sites");
    for (uint64_t i = 0; i < tmk_sites_n(f->sites) && i < MAX_ROWS; i++) {
        const struct tmk_site_total *s = tmk_sites_get(f->sites, i);
        tmk_tree_object(t, NULL);
        add_site(t, s->is_known, &s->site);
        tmk_tree_u64(t, "allocations", s->n_allocs);
        tmk_tree_u64(t, "bytes", s->bytes);
        tmk_tree_u64(t, "live_blocks", s->live_blocks);
        tmk_tree_u64(t, "live_bytes", s->live_bytes);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

static void add_holders(struct tmk_tree *t, const struct tmk_facts *f, uint64_t i, const char *key,
                        enum tmk_by by)
{
    const struct tmk_peak_row *rows;
    uint64_t n;
    if (tmk_ooms_holders(f->ooms, i, by, &rows, &n) < 0)
        tmk_die("out of memory");
    add_rows(t, key, rows, n);
}

static void add_known(struct tmk_tree *t, const char *key, uint64_t bytes)
{
    if (bytes == UINT64_MAX)
        tmk_tree_null(t, key);
    else
        tmk_tree_u64(t, key, bytes);
}

static void add_oom(struct tmk_tree *t, const struct tmk_facts *f, uint64_t i)
{
    const struct tmk_oom *o = tmk_ooms_get(f->ooms, i);
    tmk_tree_object(t, NULL);
    tmk_tree_u64(t, "time_ns", run_time(f, o->time_ns));
    add_step(t, "step", o->step);
    add_device(t, o->device);
    tmk_tree_u64(t, "request_bytes", o->requested_bytes);
    tmk_tree_u64(t, "allocated", o->allocated_bytes);
    if (o->capacity_bytes)
        tmk_tree_u64(t, "capacity", o->capacity_bytes);
    else
        tmk_tree_null(t, "capacity");
    add_site(t, o->has_site, &o->site);
    tmk_tree_text(t, "module", o->module);
    tmk_tree_text(t, "stage", o->stage);
    tmk_tree_text(t, "source", o->is_of_driver ? "driver" : "allocator");
    add_known(t, "segments", o->device == TIDEMARK_HOST ? UINT64_MAX : o->segment_bytes);
    add_known(t, "device_used", o->used_bytes);
    add_known(t, "device_total", o->total_bytes);
    add_holders(t, f, i, "by_category", TMK_BY_CATEGORY);
    add_holders(t, f, i, "by_module", TMK_BY_MODULE);
    add_holders(t, f, i, "by_line", TMK_BY_SITE);
    tmk_tree_end(t);
}

static void add_ooms(struct tmk_tree *t, const struct tmk_facts *f)
{
    tmk_tree_u64(t, "oom_count", tmk_ooms_n(f->ooms));
    tmk_tree_list(t, "ooms");
    for (uint64_t i = 0; i < tmk_ooms_n_kept(f->ooms); i++)
        add_oom(t, f, i);
    tmk_tree_end(t);
}

static void add_marks(struct tmk_tree *t, const struct tmk_facts *f)
{
    tmk_tree_u64(t, "mark_count", tmk_marks_n(f->marks));
    tmk_tree_list(t, "marks");
    for (uint64_t i = 0; i < tmk_marks_n_kept(f->marks) && i < MAX_ROWS; i++) {
        const struct tmk_mark *m = tmk_marks_get(f->marks, i);
        tmk_tree_object(t, NULL);
        tmk_tree_u64(t, "time_ns", run_time(f, m->time_ns));
        add_step(t, "step", m->step);
        tmk_tree_text(t, "name", m->name);
        tmk_tree_text(t, "text", m->text);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

static void add_quality(struct tmk_tree *t, const struct tmk_facts *f)
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
    tmk_tree_u64(t, "detail_from_ns", q->n_given_up ? run_time(f, q->detail_from_ns) : 0);
    tmk_tree_u64(t, "untracked", q->n_untracked);
    tmk_tree_u64(t, "without_details", q->n_without_details);
    tmk_tree_u64(t, "unnamed", q->n_unnamed);
    tmk_tree_u64(t, "replaced", q->n_replaced);
    tmk_tree_u64(t, "unknown_frees", q->n_unknown_free);
    tmk_tree_u64(t, "lost_segments", q->n_lost_segments);
    tmk_tree_u64(t, "damaged_chunks", q->n_bad_chunks);
    tmk_tree_u64(t, "stray_bytes", q->n_stray_bytes);
    tmk_tree_bool(t, "header_damaged", q->header_damaged);
    tmk_tree_end(t);
}

static void add_number_or_null(struct tmk_tree *t, const char *key, int64_t value)
{
    if (value < 0)
        tmk_tree_null(t, key);
    else
        tmk_tree_i64(t, key, value);
}

static void add_process(struct tmk_tree *t, const struct tmk_facts *f)
{
    const struct tmk_process *p = f->p;
    tmk_tree_object(t, NULL);
    tmk_tree_text(t, "file", p->file);
    add_number_or_null(t, "pid", p->pid ? (int64_t)p->pid : -1);
    add_number_or_null(t, "rank", p->rank);
    add_number_or_null(t, "world_size", p->world_size);
    tmk_tree_text(t, "host", p->host[0] ? p->host : NULL);
    tmk_tree_text(t, "command", p->command[0] ? p->command : NULL);
    tmk_tree_u64(t, "start_ns", run_time(f, 0));
    tmk_tree_u64(t, "end_ns", run_time(f, p->end_ns));
    tmk_tree_u64(t, "trace_bytes", tmk_reader_file_bytes(p->reader));
    tmk_tree_u64(t, "events", f->n_events);
    tmk_tree_u64(t, "allocations", f->n_allocs);
    tmk_tree_u64(t, "frees", f->n_frees);
    tmk_tree_u64(t, "live_blocks", f->n_live);
    tmk_tree_u64(t, "live_bytes", f->live_bytes);
    add_peak(t, f);
    add_timeline(t, f);
    add_steps(t, f);
    tmk_report_forecast_tree(f, t);
    add_sites(t, f);
    add_ooms(t, f);
    tmk_report_card_tree(f, t);
    tmk_report_leak_tree(f, t);
    tmk_report_frag_tree(f, t);
    add_marks(t, f);
    add_quality(t, f);
    tmk_tree_end(t);
}

static void add_refused(void *arg, const char *text)
{
    tmk_tree_text(arg, NULL, text);
}

void tmk_report_tree(const struct tmk_report *r, struct tmk_tree *t)
{
    const struct tmk_process *first = r->facts[0].p;
    char date[32];
    tmk_tree_object(t, NULL);
    tmk_tree_text(t, "run", tmk_run_path(r->run));
    tmk_tree_text(t, "tidemark", TMK_VERSION);
    tmk_tree_text(t, "started_utc",
                  tmk_date_text(first->start_realtime_ns - first->offset_ns, date));
    tmk_tree_u64(t, "duration_ns", tmk_report_end_ns(r));
    tmk_tree_u64(t, "chosen", r->chosen);
    tmk_tree_list(t, "processes");
    for (uint32_t i = 0; i < r->n; i++)
        add_process(t, &r->facts[i]);
    tmk_tree_end(t);
    tmk_tree_list(t, "not_recorded");
    tmk_refused_each(tmk_run_path(r->run), r->run, add_refused, t);
    tmk_tree_end(t);
    tmk_tree_end(t);
}
