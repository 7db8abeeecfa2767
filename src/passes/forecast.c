/* SPDX-License-Identifier: MIT */
/* passes/forecast.c - see forecast.h.
 *
 * The peaks of allocated memory say when. The memory kept after each step says why: if it rises
 * with the peaks, something leaks; if it does not, the steps themselves need more. Reserved
 * memory is looked at only where allocated memory does not grow: the allocator gives back its
 * cache before it gives up, so growth of the reserved memory is a medium risk at most, and has no
 * confidence. */
#include "passes/forecast.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/error.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/state.h"

enum {
    MOST_STEPS = 8192, /* the last ones; a leak shows in fewer */
    PACE_STEPS = 32,   /* the last ones, which tell how long a step takes */
    LOOKED_CHUNKS = 6, /* searched for a sample, backwards from the end */
};

#define SOON_S 30.0
#define SMALL_CARD                                                                                 \
    1.25 /* times the highest peak: would a device of that size run out?                           \
          */

struct steps { /* finished ones of a device, the last MOST_STEPS */
    const struct tmk_step_row *rows[MOST_STEPS];
    uint32_t n;
    const struct tmk_step_row *last; /* open or not; NULL: none */
    uint64_t max_reserved_bytes;
};

/* A device's memory, as events report it. */
struct device_limits {
    uint16_t device;
    bool has_sample, has_oom;
    struct tmk_sample_body sample; /* the last */
    uint64_t oom_bytes;            /* 0: the OOM did not say */
    uint64_t oom_ns;               /* of the last of the framework's allocator; 0: none */
};

struct work {
    const struct tmk_process *p;
    const struct tmk_forecast_samples *samples;
    struct device_limits limits[TMK_MAX_DEVICES];
    uint32_t n_limits;
    struct steps steps;
    struct tmk_oom_forecast_point points[MOST_STEPS];
};

/* ---- what events tell ---- */

static struct device_limits *need_limits(struct work *w, uint16_t device)
{
    for (uint32_t i = 0; i < w->n_limits; i++)
        if (w->limits[i].device == device)
            return &w->limits[i];
    if (w->n_limits == TMK_MAX_DEVICES)
        return NULL;
    w->limits[w->n_limits] = (struct device_limits){.device = device};
    return &w->limits[w->n_limits++];
}

/* Within a chunk the last event counts; among chunks the first that is looked at. */
static void note_events(struct work *w, struct tmk_cursor *c)
{
    struct device_limits found[TMK_MAX_DEVICES];
    uint32_t n = 0;
    struct tmk_event ev;
    while (tmk_view_left(&c->data[TMK_KIND_OTHER]) > 0 && tmk_cursor_read_other(c, &ev)) {
        bool is_sample = ev.kind == TMK_KIND_SAMPLE && ev.sample.used_bytes != UINT64_MAX &&
                         ev.sample.total_bytes != UINT64_MAX;
        uint32_t i = 0;
        while (i < n && found[i].device != ev.device)
            i++;
        if ((!is_sample && ev.kind != TMK_KIND_OOM) || i == TMK_MAX_DEVICES)
            continue;
        if (i == n)
            found[n++] = (struct device_limits){.device = ev.device};
        if (is_sample) {
            found[i].has_sample = true;
            found[i].sample = ev.sample;
        } else {
            found[i].has_oom = true;
            found[i].oom_bytes = ev.capacity_bytes;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        struct device_limits *known = need_limits(w, found[i].device);
        if (known && found[i].has_sample && !known->has_sample) {
            known->has_sample = true;
            known->sample = found[i].sample;
        }
        if (known && found[i].has_oom && !known->has_oom) {
            known->has_oom = true;
            known->oom_bytes = found[i].oom_bytes;
        }
    }
}

/* Find the times of OOMs: only a walk through all events of the chunk tells them. */
static void note_oom_times(struct work *w, struct tmk_cursor *c)
{
    struct tmk_event ev;
    while (tmk_cursor_next(c, &ev) > 0) {
        struct device_limits *l =
            ev.kind == TMK_KIND_OOM && !ev.is_of_driver ? need_limits(w, ev.device) : NULL;
        if (l && ev.time_ns > l->oom_ns)
            l->oom_ns = ev.time_ns;
    }
}

static bool is_any_oom_known(const struct work *w)
{
    for (uint32_t i = 0; i < w->n_limits; i++)
        if (w->limits[i].has_oom)
            return true;
    return false;
}

/* Search backwards from the end until something is found: samples come once a second. */
static void find_device_limits(struct work *w)
{
    struct tmk_reader *r = w->p->reader;
    struct tmk_cursor cursor = {0};
    unsigned n_looked = 0;
    for (uint32_t i = tmk_reader_n_chunks(r);
         i > 0 && n_looked < LOOKED_CHUNKS && (w->n_limits == 0 || n_looked < 2); i--) {
        const struct tmk_chunk_ref *chunk = tmk_reader_chunk(r, i - 1);
        struct tmk_view payload;
        if (chunk->header.kind != TMK_CHUNK_EVENTS)
            continue;
        n_looked++;
        if (tmk_reader_payload(r, i - 1, &payload, NULL) == 0 &&
            tmk_cursor_begin(&cursor, &chunk->header, payload, NULL) == 0) {
            note_events(w, &cursor);
            if (is_any_oom_known(w) &&
                tmk_cursor_begin(&cursor, &chunk->header, payload, NULL) == 0)
                note_oom_times(w, &cursor);
        }
    }
    tmk_cursor_fini(&cursor);
}

/* ---- steps ---- */

static void find_steps(struct work *w, uint16_t device)
{
    struct steps *s = &w->steps;
    uint64_t n = 0, n_rows = tmk_reader_n_step_rows(w->p->reader);
    *s = (struct steps){0};
    for (uint64_t i = n_rows; i > 0; i--) {
        const struct tmk_step_row *row = tmk_reader_step_row(w->p->reader, i - 1);
        if (row->device != device)
            continue;
        if (!s->last)
            s->last = row;
        if (row->has_reserved && row->peak_reserved_bytes > s->max_reserved_bytes)
            s->max_reserved_bytes = row->peak_reserved_bytes;
        if (!row->open && row->step != TMK_NO_STEP && n < MOST_STEPS)
            s->rows[MOST_STEPS - ++n] = row;
    }
    s->n = (uint32_t)n;
    for (uint64_t i = 0; i < n; i++)
        s->rows[i] = s->rows[MOST_STEPS - n + i];
}

/* The seconds that a step takes lately. */
static double pace_of_steps(const struct steps *s)
{
    uint32_t n = s->n < PACE_STEPS ? s->n : PACE_STEPS;
    uint64_t end = s->rows[s->n - 1]->end_ns, start = s->rows[s->n - n]->start_ns;
    return end > start ? (double)(end - start) / 1e9 / n : 0;
}

enum which { PEAKS, ENDS, RESERVED };

static double value_of_step(const struct tmk_step_row *row, enum which which)
{
    return (double)(which == PEAKS  ? row->peak_bytes
                    : which == ENDS ? row->end_bytes
                                    : row->peak_reserved_bytes);
}

static struct tmk_oom_forecast look_at_steps(struct work *w, enum which which, double capacity)
{
    double pace = pace_of_steps(&w->steps);
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->steps.n; i++)
        if (which != RESERVED || w->steps.rows[i]->has_reserved)
            w->points[n++] =
                (struct tmk_oom_forecast_point){(double)i, value_of_step(w->steps.rows[i], which)};
    return tmk_oom_forecast_make(w->points, n,
                                 &(struct tmk_oom_forecast_terms){
                                     .capacity_bytes = capacity,
                                     .least_span = TMK_OOM_FORECAST_LEAST_STEPS,
                                     .soon = pace > 0
                                                 ? fmax(TMK_OOM_FORECAST_SOON_STEPS, SOON_S / pace)
                                                 : TMK_OOM_FORECAST_SOON_STEPS,
                                 });
}

/* ---- what there is ---- */

static uint64_t host_capacity(const struct tmk_process *p)
{
    uint64_t bytes;
    if (tmk_reader_info_u64(p->reader, "host_available", &bytes) ||
        tmk_reader_info_u64(p->reader, "host_memory", &bytes))
        return bytes;
    return 0;
}

/* Free bytes of the device plus bytes that the process's allocator has reserved. */
static uint64_t card_capacity(const struct device_limits *l, const struct steps *s)
{
    const struct tmk_step_row *row = s->last;
    uint64_t held = !row ? 0 : row->has_reserved ? row->end_reserved_bytes : row->end_bytes;
    uint64_t used = l->sample.used_bytes, total = l->sample.total_bytes;
    held = held < used ? held : used;
    return used - held < total ? total - (used - held) : 0;
}

/* The bytes that the device has for the process; 0: not known. */
static uint64_t capacity_of_device(const struct work *w, uint16_t device)
{
    uint64_t capacity = device >> 8 == TMK_DEVICE_TYPE_CPU ? host_capacity(w->p) : 0;
    for (uint32_t i = 0; i < w->n_limits; i++) {
        const struct device_limits *l = &w->limits[i];
        if (l->device != device)
            continue;
        if (l->has_sample)
            capacity = card_capacity(l, &w->steps);
        uint64_t told = l->oom_bytes ? l->oom_bytes : w->steps.max_reserved_bytes;
        if (l->has_oom && told > 0 && (capacity == 0 || told < capacity))
            capacity = told;
    }
    return capacity;
}

/* ---- why ---- */

static enum tmk_growth_cause cause_of_growth(struct work *w, const struct tmk_oom_forecast *peaks,
                                             double capacity)
{
    if (peaks->slope <= 0)
        return peaks->risk == TMK_RISK_MEDIUM ? TMK_GROWTH_NEARLY_FULL : TMK_GROWTH_NONE;
    if (peaks->shape == TMK_SHAPE_STAIRS)
        return TMK_GROWTH_STEPS_UP;
    struct tmk_oom_forecast ends = look_at_steps(w, ENDS, capacity);
    return ends.slope >= peaks->slope / 2 ? TMK_GROWTH_LEAK : TMK_GROWTH_BATCH;
}

static void take_forecast(struct tmk_forecast *f, const struct tmk_oom_forecast *o,
                          double seconds_a_unit)
{
    f->risk = o->risk;
    f->slope = o->slope;
    f->shape = o->shape;
    f->has_time = o->has_time;
    f->has_confidence = o->has_time;
    f->confidence = o->confidence;
    f->steps_to_oom = o->to_oom;
    f->seconds_to_oom = o->to_oom * seconds_a_unit;
    f->seconds_low = o->low * seconds_a_unit;
    f->seconds_high = o->high * seconds_a_unit;
}

/* Growth that is small beside the capacity is no risk, but a leak is worth naming if it would be
 * an alarm on a device that is hardly larger than what is used. */
static void name_far_leak(struct work *w, struct tmk_forecast *f)
{
    double capacity = SMALL_CARD * (double)f->highest_bytes;
    if (f->risk != TMK_RISK_LOW || f->cause != TMK_GROWTH_NONE ||
        capacity >= (double)f->capacity_bytes)
        return;
    struct tmk_oom_forecast o = look_at_steps(w, PEAKS, capacity);
    if (!o.is_sure || cause_of_growth(w, &o, capacity) != TMK_GROWTH_LEAK)
        return;
    f->cause = TMK_GROWTH_LEAK;
    f->slope = o.slope;
}

static void forecast_by_steps(struct work *w, struct tmk_forecast *f)
{
    double capacity = (double)f->capacity_bytes, pace = pace_of_steps(&w->steps);
    struct tmk_oom_forecast o = look_at_steps(w, PEAKS, capacity);
    f->by_step = true;
    take_forecast(f, &o, pace);
    f->cause = cause_of_growth(w, &o, capacity);
    if (o.has_time || o.risk == TMK_RISK_UNKNOWN)
        return;
    o = look_at_steps(w, RESERVED, capacity);
    if (!o.has_time) {
        name_far_leak(w, f);
        return;
    }
    take_forecast(f, &o, pace);
    f->risk = TMK_RISK_MEDIUM;
    f->cause = TMK_GROWTH_FRAGMENTATION;
    f->has_confidence = false;
}

/* ---- by time ---- */

static struct tmk_oom_forecast look_at_samples(struct work *w, const struct tmk_device_samples *d,
                                               bool of_others)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->n; i++) {
        const struct tmk_device_sample *s = &d->items[i];
        uint64_t bytes = of_others ? s->others_bytes : s->used_bytes;
        if (bytes != UINT64_MAX)
            w->points[n++] = (struct tmk_oom_forecast_point){(double)s->time_ns, (double)bytes};
    }
    return tmk_oom_forecast_make(
        w->points, n,
        &(struct tmk_oom_forecast_terms){.capacity_bytes = (double)d->total_bytes,
                                         .least_span = TMK_OOM_FORECAST_LEAST_NS,
                                         .soon = TMK_OOM_FORECAST_SOON_NS,
                                         .is_by_time = true});
}

/* The whole device: this forecasts that others fill it, and a process without steps. */
static void forecast_by_time(struct work *w, struct tmk_forecast *f)
{
    const struct tmk_device_samples *d = tmk_forecast_samples_get(w->samples, f->device);
    if (!d)
        return;
    struct tmk_oom_forecast used = look_at_samples(w, d, false),
                            others = look_at_samples(w, d, true);
    bool is_theirs = others.slope > 0 && others.slope >= used.slope / 2;
    if (used.risk == TMK_RISK_UNKNOWN || (f->by_step && (!is_theirs || used.risk <= f->risk)))
        return;
    take_forecast(f, &used, 1e-9);
    f->slope *= 1e9;
    f->by_step = false;
    f->cause = used.slope > 0
                   ? (is_theirs ? TMK_GROWTH_OTHER_PROCESS : TMK_GROWTH_STEADY)
                   : (used.risk == TMK_RISK_MEDIUM ? TMK_GROWTH_NEARLY_FULL : TMK_GROWTH_NONE);
}

/* ---- what has happened ---- */

static int64_t step_at(const struct work *w, uint16_t device, uint64_t time_ns)
{
    for (uint64_t i = tmk_reader_n_step_rows(w->p->reader); i > 0; i--) {
        const struct tmk_step_row *row = tmk_reader_step_row(w->p->reader, i - 1);
        if (row->device == device && row->start_ns <= time_ns)
            return row->open || row->end_ns >= time_ns ? row->step : TMK_NO_STEP;
    }
    return TMK_NO_STEP;
}

/* A process that ended without finishing another step after an OOM has run out of memory: what its
 * steps would have led to is of no use. */
static void note_forecast_oom(const struct work *w, struct tmk_forecast *f)
{
    const struct device_limits *l = NULL;
    for (uint32_t i = 0; i < w->n_limits; i++)
        if (w->limits[i].device == f->device && w->limits[i].oom_ns > 0)
            l = &w->limits[i];
    if (!l)
        return;
    f->has_oom = true;
    f->oom_ns = l->oom_ns;
    f->oom_step = step_at(w, f->device, l->oom_ns);
    bool went_on = w->steps.n > 0 && w->steps.rows[w->steps.n - 1]->end_ns >= l->oom_ns;
    if (w->p->live || went_on || w->steps.n == 0)
        return;
    f->has_run_out = f->has_time = f->by_step = true;
    f->has_confidence = false;
    f->risk = TMK_RISK_CRITICAL;
    f->cause = TMK_GROWTH_RAN_OUT;
    f->steps_to_oom = f->seconds_to_oom = f->seconds_low = f->seconds_high = 0;
}

/* ---- together ---- */

static void forecast_device(struct work *w, uint16_t device, struct tmk_forecast *ret)
{
    find_steps(w, device);
    *ret = (struct tmk_forecast){.device = device, .capacity_bytes = capacity_of_device(w, device)};
    for (uint32_t i = 0; i < w->steps.n; i++)
        if (w->steps.rows[i]->peak_bytes > ret->highest_bytes)
            ret->highest_bytes = w->steps.rows[i]->peak_bytes;
    if (ret->capacity_bytes > 0 && w->steps.n > 0)
        forecast_by_steps(w, ret);
    ret->by_step = ret->risk != TMK_RISK_UNKNOWN;
    forecast_by_time(w, ret);
    note_forecast_oom(w, ret);
}

static bool is_device_listed(const struct tmk_forecast *list, uint32_t n, uint16_t device)
{
    for (uint32_t i = 0; i < n; i++)
        if (list[i].device == device)
            return true;
    return false;
}

int tmk_forecast_list(const struct tmk_process *p, const struct tmk_forecast_samples *samples,
                      struct tmk_forecast *ret, uint32_t *ret_n, struct tmk_error *err)
{
    struct work *w = calloc(1, sizeof *w);
    if (!w)
        return tmk_fail(err, TMK_ENOMEM, "no memory for the forecast");
    w->p = p;
    w->samples = samples;
    find_device_limits(w);
    uint32_t n = 0;
    for (uint64_t i = 0; i < tmk_reader_n_step_rows(p->reader); i++) {
        uint16_t device = tmk_reader_step_row(p->reader, i)->device;
        if (n < TMK_MAX_DEVICES && !is_device_listed(ret, n, device))
            forecast_device(w, device, &ret[n++]);
    }
    free(w);
    *ret_n = n;
    return 0;
}

int tmk_forecast_of(const struct tmk_process *p, uint16_t device,
                    const struct tmk_forecast_samples *samples, struct tmk_forecast *ret)
{
    struct work *w = calloc(1, sizeof *w);
    if (!w)
        return TMK_ENOMEM;
    w->p = p;
    w->samples = samples;
    find_device_limits(w);
    forecast_device(w, device, ret);
    free(w);
    return 0;
}

const char *tmk_forecast_text(const struct tmk_forecast *f, bool is_short, char *buffer)
{
    char time[TMK_AMOUNT_BYTES];
    const char *risk = tmk_risk_text(f->risk);
    if (!risk)
        snprintf(buffer, TMK_FORECAST_TEXT_BYTES, "-");
    else if (!f->has_time)
        snprintf(buffer, TMK_FORECAST_TEXT_BYTES, "%s", _(risk));
    else if (f->has_run_out)
        snprintf(buffer, TMK_FORECAST_TEXT_BYTES, _("out of memory"));
    else if (is_short)
        snprintf(buffer, TMK_FORECAST_TEXT_BYTES, "%s %s", _(risk),
                 tmk_time_text((uint64_t)(f->seconds_to_oom * 1e9), time));
    else if (f->has_confidence)
        snprintf(buffer, TMK_FORECAST_TEXT_BYTES, _("%s: full in %s (confidence %.2f), %s"),
                 _(risk), tmk_time_text((uint64_t)(f->seconds_to_oom * 1e9), time), f->confidence,
                 _(tmk_growth_cause_name(f->cause)));
    else
        snprintf(buffer, TMK_FORECAST_TEXT_BYTES, _("%s: full in %s, %s"), _(risk),
                 tmk_time_text((uint64_t)(f->seconds_to_oom * 1e9), time),
                 _(tmk_growth_cause_name(f->cause)));
    return buffer;
}
