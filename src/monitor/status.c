/* SPDX-License-Identifier: MIT */
/* monitor/status.c - see status.h. */
#include "monitor/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "device/device.h"
#include "forecast/device_forecast.h"
#include "forecast/oom_forecast.h"
#include "kit/amount.h"
#include "monitor/growth.h"
#include "monitor/watched_forecast.h"

const char *tmk_iso_text(time_t t, char *buffer)
{
    struct tm local;
    if (!localtime_r(&t, &local) ||
        strftime(buffer, TMK_ISO_BYTES, "%Y-%m-%dT%H:%M:%S", &local) == 0)
        buffer[0] = '\0';
    return buffer;
}

/* ---- values that may be unknown ---- */

static void add_known_bytes(struct tmk_tree *t, const char *key, bool is_known, uint64_t bytes)
{
    tmk_tree_u64_if(t, key, is_known && bytes != TMK_BYTES_UNKNOWN, bytes);
}

static void add_percent(struct tmk_tree *t, const char *key, bool is_known, double percent)
{
    tmk_tree_fixed(t, key, is_known ? percent : NAN, 2);
}

static void add_seconds(struct tmk_tree *t, const char *key, bool is_known, uint64_t ns)
{
    tmk_tree_fixed(t, key, is_known ? (double)ns / 1e9 : NAN, 3);
}

/* Write a GPU's number as a number, as that tool does; else the name. */
static void add_device_label(struct tmk_tree *t, const char *key,
                             const struct tmk_watched_device *u)
{
    if (u->label[strspn(u->label, "0123456789")] == '\0')
        tmk_tree_u64(t, key, strtoull(u->label, NULL, 10));
    else
        tmk_tree_text(t, key, u->label);
}

/* ---- a device ---- */

static void add_current(struct tmk_tree *t, const struct tmk_watched_device *u)
{
    tmk_tree_object(t, "current_usage");
    add_known_bytes(t, "allocated", u->has_now, u->now.used_bytes);
    add_known_bytes(t, "free", u->has_now, tmk_device_free_bytes(&u->now));
    add_known_bytes(t, "total", u->has_now, u->now.total_bytes);
    add_percent(t, "utilization_percent", u->has_now, tmk_device_use_percent(u));
    add_known_bytes(t, "reserved", u->has_now, u->now.reserved_bytes);
    tmk_tree_end(t);
}

static void add_statistics(struct tmk_tree *t, const struct tmk_watched_device *u)
{
    bool known = u->n_samples > 0;
    double n = known ? (double)u->n_samples : 1;
    tmk_tree_object(t, "statistics");
    add_percent(t, "avg_utilization", known, u->sum_percent / n);
    add_percent(t, "max_utilization", known, u->max_percent);
    tmk_tree_u64(t, "samples_count", u->n_samples);
    add_known_bytes(t, "min_allocated", known, u->min_bytes);
    add_known_bytes(t, "avg_allocated", known, known ? (uint64_t)(u->sum_bytes / u->n_samples) : 0);
    add_known_bytes(t, "max_allocated", known, u->max_bytes);
    add_seconds(t, "max_time_s", known, u->max_ns);
    tmk_tree_u64(t, "gaps_count", u->n_gaps);
    tmk_tree_end(t);
}

static void add_actions(struct tmk_tree *t, const struct tmk_device_forecast *p)
{
    const char *advice;
    if (!tmk_tree_list_if(t, "recommended_actions", p->risk_level != TMK_RISK_UNKNOWN))
        return;
    for (unsigned i = 0; (advice = tmk_device_forecast_advice(p, i)) != NULL; i++)
        tmk_tree_text(t, NULL, advice);
    tmk_tree_end(t);
}

/* The fields of a prediction that the tool has, in its order. */
static void add_oom_fields(struct tmk_tree *t, const struct tmk_device_forecast *p,
                           const struct tmk_watched_device *u)
{
    tmk_tree_text(t, "risk_level", tmk_risk_text(p->risk_level));
    tmk_tree_fixed(t, "predicted_oom_time", p->has_time ? p->predicted_oom_time : NAN, 1);
    tmk_tree_fixed(t, "confidence", p->has_time ? p->confidence : NAN, 2);
    add_percent(t, "current_usage", u->has_now, tmk_device_use_percent(u));
    tmk_tree_fixed(t, "trend_slope", p->has_trend ? p->trend_slope : NAN, 1);
    add_actions(t, p);
}

/* Fields that the tool does not have. */
static void add_bounds(struct tmk_tree *t, const struct tmk_device_forecast *p)
{
    tmk_tree_fixed(t, "predicted_low", p->has_time ? p->predicted_low : NAN, 1);
    tmk_tree_fixed(t, "predicted_high", p->has_time ? p->predicted_high : NAN, 1);
    tmk_tree_text(t, "cause",
                  p->risk_level != TMK_RISK_UNKNOWN ? tmk_growth_cause_name(p->cause) : NULL);
}

void tmk_device_forecast_write(struct tmk_tree *t, const char *key,
                               const struct tmk_watched_device *u, const struct tmk_alarm *alarm,
                               const struct tmk_device_forecast *p,
                               const struct tmk_device_jobs *jobs)
{
    tmk_tree_object(t, key);
    add_device_label(t, "device_id", u);
    add_oom_fields(t, p, u);
    tmk_tree_label(t, "name", u->device->name);
    add_known_bytes(t, "allocated", u->has_now, u->now.used_bytes);
    add_known_bytes(t, "total", u->has_now, u->now.total_bytes);
    add_percent(t, "threshold", true, alarm->threshold_percent);
    tmk_tree_bool_if(t, "over_threshold", u->has_now,
                     tmk_device_taken_percent(u) >= alarm->threshold_percent);
    tmk_tree_u64(t, "times_passed", alarm->n_passed);
    tmk_tree_label(t, "error", u->reason);
    add_percent(t, "taken_percent", u->has_now, tmk_device_taken_percent(u));
    add_bounds(t, p);
    tmk_device_ooms_write(t, jobs);
    tmk_tree_end(t);
}

static void add_device_forecast(struct tmk_tree *t, const struct tmk_watched_device *u,
                                const struct tmk_device_forecast *p)
{
    tmk_tree_object(t, "forecast");
    add_oom_fields(t, p, u);
    add_bounds(t, p);
    tmk_tree_end(t);
}

static struct tmk_device_forecast forecast_of_status(const struct tmk_monitor_status *st,
                                                     unsigned i)
{
    struct tmk_device_forecast_terms terms = {
        .warm_up_ns = st->warm_up_ns,
        .threshold_percent =
            st->alarms ? st->alarms[i].threshold_percent : TMK_DEVICE_FORECAST_THRESHOLD,
        .had_oom = st->jobs && tmk_device_jobs_had_oom(&st->jobs[i], st->elapsed_ns)};
    return tmk_watched_device_forecast(tmk_sampler_device(st->sampler, i), &terms);
}

static void add_device_status(struct tmk_tree *t, const struct tmk_monitor_status *st, unsigned i)
{
    const struct tmk_watched_device *u = tmk_sampler_device(st->sampler, i);
    tmk_tree_object(t, u->label);
    add_current(t, u);
    add_statistics(t, u);
    tmk_tree_label(t, "name", u->device->name);
    tmk_tree_text(t, "kind", tmk_device_kind_text(u->device->kind));
    tmk_tree_label(t, "id", u->device->id);
    tmk_tree_text(t, "limited_by", u->has_limit ? "control group" : NULL);
    tmk_tree_label(t, "error", u->reason);
    struct tmk_device_forecast p = forecast_of_status(st, i);
    if (st->alarms)
        tmk_device_forecast_write(t, "oom", u, &st->alarms[i], &p, st->jobs ? &st->jobs[i] : NULL);
    else
        add_device_forecast(t, u, &p);
    if (st->jobs)
        tmk_device_jobs_write(t, &st->jobs[i]);
    tmk_tree_end(t);
}

/* ---- a process ---- */

static void add_rate(struct tmk_tree *t, const struct tmk_growth *g)
{
    double span_s = (double)g->span_ns / 1e9;
    tmk_tree_i64_if(t, "growth_bytes", g->is_known, g->bytes);
    tmk_tree_fixed(t, "bytes_per_second",
                   g->is_known && span_s > 0 ? (double)g->bytes / span_s : NAN, 1);
    add_seconds(t, "window_s", g->is_known, g->span_ns);
}

static const char *verdict_text(bool is_known, bool is_leak)
{
    return is_leak ? "leak" : is_known ? "clean" : NULL;
}

static void add_process_object(struct tmk_tree *t, const struct tmk_resident *r,
                               const struct tmk_monitor_status *st)
{
    uint64_t threshold_bytes = st->leaks ? st->leaks->threshold_bytes : 0;
    struct tmk_growth growth = tmk_growth_judge(&r->history, 0, st->least_ns);
    bool is_known = r->n_looks > 0;
    tmk_tree_object(t, "process");
    tmk_tree_i64(t, "pid", r->pid);
    add_known_bytes(t, "rss_before", is_known, r->first_bytes);
    add_known_bytes(t, "rss", is_known, r->now_bytes);
    add_known_bytes(t, "rss_max", is_known, r->max_bytes);
    add_rate(t, &growth);
    tmk_tree_text(t, "verdict",
                  verdict_text(growth.is_known, tmk_growth_is_leak(&growth, threshold_bytes)));
    tmk_tree_end(t);
}

/* ---- the whole ---- */

/* A device that does not answer now keeps its size; its use is unknown. */
static void add_summary(struct tmk_tree *t, const struct tmk_sampler *s)
{
    double total = 0, answered = 0, used = 0;
    unsigned n = tmk_sampler_n_devices(s);
    for (unsigned i = 0; i < n; i++) {
        const struct tmk_watched_device *u = tmk_sampler_device(s, i);
        if (u->n_samples == 0 || u->is_part_of_other)
            continue;
        total += (double)u->now.total_bytes;
        if (!u->has_now)
            continue;
        answered += (double)u->now.total_bytes;
        used += (double)u->now.used_bytes;
    }
    tmk_tree_object(t, "summary");
    tmk_tree_u64(t, "total_devices", n);
    tmk_tree_fixed(t, "total_memory_gb", total > 0 ? total / TMK_GB : NAN, 2);
    add_percent(t, "overall_utilization", answered > 0, answered > 0 ? 100 * used / answered : 0);
    tmk_tree_end(t);
}

void tmk_monitor_status_write(struct tmk_tree *t, const struct tmk_monitor_status *st)
{
    char iso[TMK_ISO_BYTES];
    tmk_tree_object(t, NULL);
    tmk_tree_text(t, "timestamp", tmk_iso_text(st->now, iso));
    tmk_tree_object(t, "devices");
    for (unsigned i = 0; i < tmk_sampler_n_devices(st->sampler); i++)
        add_device_status(t, st, i);
    tmk_tree_end(t);
    add_summary(t, st->sampler);
    tmk_tree_text(t, "started", tmk_iso_text(st->started, iso));
    add_seconds(t, "duration_s", true, st->elapsed_ns);
    add_seconds(t, "interval_s", true, tmk_sampler_settings(st->sampler)->interval_ns);
    tmk_tree_u64(t, "missed_samples", tmk_sampler_n_missed(st->sampler));
    if (st->leaks)
        tmk_leaks_write(t, st->leaks, st->elapsed_ns);
    if (st->process)
        add_process_object(t, st->process, st);
    tmk_tree_end(t);
}

/* ---- leaks ---- */

/* Write how much a device or process grows, and how sure that is. */
static void add_device_growth(struct tmk_tree *t, const struct tmk_leak_row *row)
{
    const struct tmk_process_use *p = row->process;
    add_device_label(t, "device", row->device);
    tmk_tree_i64_if(t, "pid", p != NULL, p ? p->now.pid : 0);
    tmk_tree_label(t, "process", p ? p->now.name : NULL);
    add_rate(t, &row->growth);
    tmk_tree_bool_if(t, "ended", p != NULL, p && p->has_ended);
    if (p)
        tmk_tree_bytes(t, "last_bytes", p->now.used_bytes);
    else
        add_known_bytes(t, "last_bytes", row->device->has_now, row->device->now.used_bytes);
}

static void put_device_leak(struct tmk_tree *t, const struct tmk_leak_row *row)
{
    static const char *const unknown[] = {"file", "line", "function"};
    static const char *const unknown_too[] = {"category", "module", "bytes_per_step",
                                              "blocks_per_step", "first_step"};
    tmk_tree_object(t, NULL);
    for (size_t i = 0; i < TMK_N(unknown); i++)
        tmk_tree_unknown(t, unknown[i]);
    tmk_tree_list(t, "stack");
    tmk_tree_end(t);
    for (size_t i = 0; i < TMK_N(unknown_too); i++)
        tmk_tree_unknown(t, unknown_too[i]);
    tmk_tree_fixed(t, "confidence", row->growth.rank, 2);
    add_device_growth(t, row);
    tmk_tree_end(t);
}

void tmk_leaks_write(struct tmk_tree *t, const struct tmk_leaks *leaks, uint64_t elapsed_ns)
{
    char reason[TMK_LEAKS_REASON_BYTES];
    tmk_tree_text(t, "verdict", verdict_text(leaks->n_known > 0, leaks->n_leaks > 0));
    tmk_tree_text(t, "verdict_reason", tmk_leaks_reason(leaks, elapsed_ns, reason));
    tmk_tree_list(t, "leaks");
    for (uint64_t i = 0; i < leaks->n_leaks; i++)
        put_device_leak(t, &leaks->rows[i]);
    tmk_tree_end(t);
    tmk_tree_list(t, "watched");
    for (uint64_t i = 0; i < leaks->n; i++) {
        tmk_tree_object(t, NULL);
        add_device_growth(t, &leaks->rows[i]);
        tmk_tree_text(t, "verdict",
                      verdict_text(leaks->rows[i].growth.is_known, leaks->rows[i].is_leak));
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}
