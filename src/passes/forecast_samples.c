/* SPDX-License-Identifier: MIT */
/* passes/forecast_samples.c - see forecast_samples.h. */
#include "passes/forecast_samples.h"

#include <stdlib.h>

#include "base/error.h"
#include "trace/events.h"
#include "trace/replay.h"
#include "trace/state.h"

struct tmk_forecast_samples {
    struct tmk_device_samples *devices[TMK_MAX_DEVICES];
    uint32_t n;
};

int tmk_forecast_samples_open(struct tmk_forecast_samples **ret)
{
    struct tmk_forecast_samples *s = calloc(1, sizeof *s);
    if (!s)
        return TMK_ENOMEM;
    *ret = s;
    return 0;
}

struct tmk_forecast_samples *tmk_forecast_samples_close(struct tmk_forecast_samples *s)
{
    for (uint32_t i = 0; s && i < s->n; i++)
        free(s->devices[i]);
    free(s);
    return NULL;
}

static struct tmk_device_samples *samples_of_device(struct tmk_forecast_samples *s, uint16_t device)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->devices[i]->device == device)
            return s->devices[i];
    struct tmk_device_samples *d = s->n < TMK_MAX_DEVICES ? calloc(1, sizeof *d) : NULL;
    if (!d)
        return NULL;
    d->device = device;
    d->width = 1;
    return s->devices[s->n++] = d;
}

/* ---- adding ---- */

static uint64_t higher_known(uint64_t a, uint64_t b)
{
    if (a == UINT64_MAX || b == UINT64_MAX)
        return a == UINT64_MAX ? b : a;
    return a > b ? a : b;
}

static void merge_samples(struct tmk_device_sample *a, const struct tmk_device_sample *b)
{
    a->time_ns = b->time_ns;
    a->used_bytes = higher_known(a->used_bytes, b->used_bytes);
    a->others_bytes = higher_known(a->others_bytes, b->others_bytes);
}

static void halve_samples(struct tmk_device_samples *d)
{
    for (uint32_t i = 0; i < TMK_FORECAST_SAMPLES / 2; i++) {
        d->items[i] = d->items[2 * i];
        merge_samples(&d->items[i], &d->items[2 * i + 1]);
    }
    d->n = TMK_FORECAST_SAMPLES / 2;
    d->width *= 2;
    d->n_in_last = d->width;
}

static void add_device_sample(struct tmk_device_samples *d, const struct tmk_device_sample *sample)
{
    if (d->n > 0 && d->n_in_last < d->width) {
        merge_samples(&d->items[d->n - 1], sample);
        d->n_in_last++;
        return;
    }
    if (d->n == TMK_FORECAST_SAMPLES)
        halve_samples(d);
    d->items[d->n++] = *sample;
    d->n_in_last = 1;
}

static void on_samples_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                             struct tmk_block *b)
{
    struct tmk_forecast_samples *s = arg;
    (void)rp;
    (void)b;
    if (ev->sample.used_bytes == UINT64_MAX || ev->sample.total_bytes == UINT64_MAX)
        return;
    struct tmk_device_samples *d = samples_of_device(s, ev->device);
    if (!d)
        return;
    d->total_bytes = ev->sample.total_bytes;
    add_device_sample(d, &(struct tmk_device_sample){ev->time_ns, ev->sample.used_bytes,
                                                     ev->sample.others_bytes});
}

struct tmk_visitor tmk_forecast_samples_visitor(struct tmk_forecast_samples *s)
{
    return (struct tmk_visitor){.arg = s, .kinds = TMK_HEARS(SAMPLE), .event = on_samples_event};
}

const struct tmk_device_samples *tmk_forecast_samples_get(const struct tmk_forecast_samples *s,
                                                          uint16_t device)
{
    for (uint32_t i = 0; s && i < s->n; i++)
        if (s->devices[i]->device == device)
            return s->devices[i];
    return NULL;
}
