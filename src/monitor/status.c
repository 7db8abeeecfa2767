/* SPDX-License-Identifier: MIT */
/* monitor/status.c - see status.h. */
#include "monitor/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "kit/amount.h"

const char *tmk_iso_text(time_t t, char *buffer)
{
    struct tm local;
    if (!localtime_r(&t, &local) ||
        strftime(buffer, TMK_ISO_BYTES, "%Y-%m-%dT%H:%M:%S", &local) == 0)
        buffer[0] = '\0';
    return buffer;
}

/* ---- values that may be unknown ---- */

static void add_known_bytes(struct tmk_json *j, const char *key, bool is_known, uint64_t bytes)
{
    if (is_known && bytes != TMK_BYTES_UNKNOWN)
        tmk_json_u64(j, key, bytes);
    else
        tmk_json_null(j, key);
}

static void add_percent(struct tmk_json *j, const char *key, bool is_known, double percent)
{
    tmk_json_fixed(j, key, is_known ? percent : NAN, 2);
}

static void add_seconds(struct tmk_json *j, const char *key, bool is_known, uint64_t ns)
{
    tmk_json_fixed(j, key, is_known ? (double)ns / 1e9 : NAN, 3);
}

static const char *known_text(const char *text)
{
    return text[0] ? text : NULL;
}

/* Write a GPU's number as a number, as that tool does; else the name. */
static void add_device_label(struct tmk_json *j, const char *key,
                             const struct tmk_watched_device *u)
{
    if (u->label[strspn(u->label, "0123456789")] == '\0')
        tmk_json_u64(j, key, strtoull(u->label, NULL, 10));
    else
        tmk_json_text(j, key, u->label);
}

/* ---- a device ---- */

static void add_current(struct tmk_json *j, const struct tmk_watched_device *u)
{
    tmk_json_object(j, "current_usage");
    add_known_bytes(j, "allocated", u->has_now, u->now.used_bytes);
    add_known_bytes(j, "free", u->has_now, tmk_device_free_bytes(&u->now));
    add_known_bytes(j, "total", u->has_now, u->now.total_bytes);
    add_percent(j, "utilization_percent", u->has_now, tmk_device_use_percent(u));
    add_known_bytes(j, "reserved", u->has_now, u->now.reserved_bytes);
    tmk_json_end(j);
}

static void add_statistics(struct tmk_json *j, const struct tmk_watched_device *u)
{
    bool known = u->n_samples > 0;
    double n = known ? (double)u->n_samples : 1;
    tmk_json_object(j, "statistics");
    add_percent(j, "avg_utilization", known, u->sum_percent / n);
    add_percent(j, "max_utilization", known, u->max_percent);
    tmk_json_u64(j, "samples_count", u->n_samples);
    add_known_bytes(j, "min_allocated", known, u->min_bytes);
    add_known_bytes(j, "avg_allocated", known, known ? (uint64_t)(u->sum_bytes / u->n_samples) : 0);
    add_known_bytes(j, "max_allocated", known, u->max_bytes);
    add_seconds(j, "max_time_s", known, u->max_ns);
    tmk_json_u64(j, "gaps_count", u->n_gaps);
    tmk_json_end(j);
}

static void add_actions(struct tmk_json *j, const struct tmk_device_forecast *p)
{
    const char *advice;
    if (p->risk_level == TMK_RISK_UNKNOWN) {
        tmk_json_null(j, "recommended_actions");
        return;
    }
    tmk_json_array(j, "recommended_actions");
    for (unsigned i = 0; (advice = tmk_growth_cause_advice(p->cause, i)) != NULL; i++)
        tmk_json_text(j, NULL, advice);
    tmk_json_end(j);
}

/* The fields of a prediction that the tool has, in its order. */
static void add_oom_fields(struct tmk_json *j, const struct tmk_device_forecast *p,
                           const struct tmk_watched_device *u)
{
    bool is_known = p->risk_level != TMK_RISK_UNKNOWN;
    tmk_json_text(j, "risk_level", tmk_risk_text(p->risk_level));
    tmk_json_fixed(j, "predicted_oom_time", p->has_time ? p->predicted_oom_time : NAN, 1);
    tmk_json_fixed(j, "confidence", p->has_time ? p->confidence : NAN, 2);
    add_percent(j, "current_usage", u->has_now, tmk_device_use_percent(u));
    tmk_json_fixed(j, "trend_slope", is_known ? p->trend_slope : NAN, 1);
    add_actions(j, p);
}

/* Fields that the tool does not have. */
static void add_bounds(struct tmk_json *j, const struct tmk_device_forecast *p)
{
    tmk_json_fixed(j, "predicted_low", p->has_time ? p->predicted_low : NAN, 1);
    tmk_json_fixed(j, "predicted_high", p->has_time ? p->predicted_high : NAN, 1);
    tmk_json_text(j, "cause",
                  p->risk_level != TMK_RISK_UNKNOWN ? tmk_growth_cause_name(p->cause) : NULL);
}

void tmk_device_forecast_write(struct tmk_json *j, const char *key,
                               const struct tmk_watched_device *u, const struct tmk_alarm *alarm,
                               const struct tmk_device_forecast *p)
{
    tmk_json_object(j, key);
    add_device_label(j, "device_id", u);
    add_oom_fields(j, p, u);
    tmk_json_text(j, "name", known_text(u->device->name));
    add_known_bytes(j, "allocated", u->has_now, u->now.used_bytes);
    add_known_bytes(j, "total", u->has_now, u->now.total_bytes);
    add_percent(j, "threshold", true, alarm->threshold_percent);
    if (u->has_now)
        tmk_json_bool(j, "over_threshold", tmk_device_taken_percent(u) >= alarm->threshold_percent);
    else
        tmk_json_null(j, "over_threshold");
    tmk_json_u64(j, "times_passed", alarm->n_passed);
    tmk_json_text(j, "error", known_text(u->reason));
    add_percent(j, "taken_percent", u->has_now, tmk_device_taken_percent(u));
    add_bounds(j, p);
    tmk_json_end(j);
}

static void add_device_forecast(struct tmk_json *j, const struct tmk_watched_device *u,
                                const struct tmk_device_forecast *p)
{
    tmk_json_object(j, "forecast");
    add_oom_fields(j, p, u);
    add_bounds(j, p);
    tmk_json_end(j);
}

static void add_device_status(struct tmk_json *j, const struct tmk_monitor_status *st, unsigned i)
{
    const struct tmk_watched_device *u = tmk_sampler_device(st->sampler, i);
    tmk_json_object(j, u->label);
    add_current(j, u);
    add_statistics(j, u);
    tmk_json_text(j, "name", known_text(u->device->name));
    tmk_json_text(j, "kind", tmk_device_kind_text(u->device->kind));
    tmk_json_text(j, "id", known_text(u->device->id));
    tmk_json_text(j, "limited_by", u->has_limit ? "control group" : NULL);
    tmk_json_text(j, "error", known_text(u->reason));
    struct tmk_device_forecast p = tmk_watched_device_forecast(u, TMK_DEVICE_FORECAST_WARM_UP_NS);
    if (st->alarms)
        tmk_device_forecast_write(j, "oom", u, &st->alarms[i], &p);
    else
        add_device_forecast(j, u, &p);
    if (st->is_whole) {
        tmk_json_null(j, "fragmentation");
        tmk_json_text(j, "fragmentation_reason",
                      "the driver does not tell which blocks there are; record a job with "
                      "tidemark run");
    }
    tmk_json_end(j);
}

/* ---- a process ---- */

static void add_rate(struct tmk_json *j, const struct tmk_growth *g)
{
    double span_s = (double)g->span_ns / 1e9;
    if (g->is_known)
        tmk_json_i64(j, "growth_bytes", g->bytes);
    else
        tmk_json_null(j, "growth_bytes");
    tmk_json_fixed(j, "bytes_per_second",
                   g->is_known && span_s > 0 ? (double)g->bytes / span_s : NAN, 1);
    add_seconds(j, "window_s", g->is_known, g->span_ns);
}

static const char *verdict_text(bool is_known, bool is_leak)
{
    return is_leak ? "leak" : is_known ? "clean" : NULL;
}

static void add_process_object(struct tmk_json *j, const struct tmk_resident *r,
                               uint64_t threshold_bytes)
{
    struct tmk_growth growth = tmk_growth_judge(&r->history);
    bool is_known = r->n_looks > 0;
    tmk_json_object(j, "process");
    tmk_json_i64(j, "pid", r->pid);
    add_known_bytes(j, "rss_before", is_known, r->first_bytes);
    add_known_bytes(j, "rss", is_known, r->now_bytes);
    add_known_bytes(j, "rss_max", is_known, r->max_bytes);
    add_rate(j, &growth);
    tmk_json_text(j, "verdict",
                  verdict_text(growth.is_known, tmk_growth_is_leak(&growth, threshold_bytes)));
    tmk_json_end(j);
}

/* ---- the whole ---- */

/* A device that does not answer now keeps its size; its use is unknown. */
static void add_summary(struct tmk_json *j, const struct tmk_sampler *s)
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
    tmk_json_object(j, "summary");
    tmk_json_u64(j, "total_devices", n);
    tmk_json_fixed(j, "total_memory_gb", total > 0 ? total / TMK_GB : NAN, 2);
    add_percent(j, "overall_utilization", answered > 0, answered > 0 ? 100 * used / answered : 0);
    tmk_json_end(j);
}

void tmk_monitor_status_write(struct tmk_json *j, const struct tmk_monitor_status *st)
{
    char iso[TMK_ISO_BYTES];
    tmk_json_object(j, NULL);
    tmk_json_text(j, "timestamp", tmk_iso_text(st->now, iso));
    tmk_json_object(j, "devices");
    for (unsigned i = 0; i < tmk_sampler_n_devices(st->sampler); i++)
        add_device_status(j, st, i);
    tmk_json_end(j);
    add_summary(j, st->sampler);
    tmk_json_text(j, "started", tmk_iso_text(st->started, iso));
    add_seconds(j, "duration_s", true, st->elapsed_ns);
    add_seconds(j, "interval_s", true, tmk_sampler_settings(st->sampler)->interval_ns);
    tmk_json_u64(j, "missed_samples", tmk_sampler_n_missed(st->sampler));
    if (st->leaks)
        tmk_leaks_write(j, st->leaks);
    if (st->process)
        add_process_object(j, st->process, st->leaks ? st->leaks->threshold_bytes : 0);
    tmk_json_end(j);
}

/* ---- leaks ---- */

/* Write how much a device or process grows, and how sure that is. */
static void add_growth(struct tmk_json *j, const struct tmk_leak_row *row)
{
    add_device_label(j, "device", row->device);
    if (row->process)
        tmk_json_i64(j, "pid", row->process->now.pid);
    else
        tmk_json_null(j, "pid");
    tmk_json_text(j, "process", row->process ? known_text(row->process->now.name) : NULL);
    add_rate(j, &row->growth);
    if (row->process)
        tmk_json_bool(j, "ended", row->process->has_ended);
    else
        tmk_json_null(j, "ended");
    if (row->process)
        add_known_bytes(j, "last_bytes", true, row->process->now.used_bytes);
    else
        add_known_bytes(j, "last_bytes", row->device->has_now, row->device->now.used_bytes);
}

static void add_leak_object(struct tmk_json *j, const struct tmk_leak_row *row)
{
    static const char *const unknown[] = {"file", "line", "function"};
    static const char *const unknown_too[] = {"category", "module", "bytes_per_step",
                                              "blocks_per_step", "first_step"};
    tmk_json_object(j, NULL);
    for (size_t i = 0; i < TMK_N(unknown); i++)
        tmk_json_null(j, unknown[i]);
    tmk_json_array(j, "stack");
    tmk_json_end(j);
    for (size_t i = 0; i < TMK_N(unknown_too); i++)
        tmk_json_null(j, unknown_too[i]);
    tmk_json_fixed(j, "confidence", row->growth.rank, 2);
    add_growth(j, row);
    tmk_json_end(j);
}

void tmk_leaks_write(struct tmk_json *j, const struct tmk_leaks *leaks)
{
    tmk_json_text(j, "verdict", verdict_text(leaks->n_known > 0, leaks->n_leaks > 0));
    tmk_json_array(j, "leaks");
    for (uint64_t i = 0; i < leaks->n_leaks; i++)
        add_leak_object(j, &leaks->rows[i]);
    tmk_json_end(j);
    tmk_json_array(j, "watched");
    for (uint64_t i = 0; i < leaks->n; i++) {
        tmk_json_object(j, NULL);
        add_growth(j, &leaks->rows[i]);
        tmk_json_text(j, "verdict",
                      verdict_text(leaks->rows[i].growth.is_known, leaks->rows[i].is_leak));
        tmk_json_end(j);
    }
    tmk_json_end(j);
}
