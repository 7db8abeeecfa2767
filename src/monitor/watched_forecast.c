/* SPDX-License-Identifier: MIT */
/* monitor/watched_forecast.c - see watched_forecast.h. The history is reduced to as many points as
 * a forecast can use: each is the maximum of a run of neighbouring entries. */
#include "monitor/watched_forecast.h"

#include "device/device.h"
#include "forecast/oom_forecast.h"
#include "kit/amount.h"
#include "monitor/history.h"

enum { MOST_POINTS = 4 * TMK_OOM_FORECAST_POINTS };

/* Returns how many points. */
static uint64_t reduce_history(const struct tmk_history *h, struct tmk_oom_forecast_point *ret)
{
    if (h->n == 0)
        return 0;
    uint64_t width = (h->n + MOST_POINTS - 1) / MOST_POINTS, n = 0;
    uint64_t first = h->n % width; /* where runs begin, so that the last one is complete */
    for (uint64_t i = 0; i < h->n; i++) {
        const struct tmk_history_entry *e = &h->entries[i];
        struct tmk_oom_forecast_point *p = &ret[n - (n > 0)];
        if (i == 0 || i % width == first) {
            p = &ret[n++];
            p->bytes = 0;
        }
        p->x = (double)e->end_ns;
        p->bytes = (double)e->max_bytes > p->bytes ? (double)e->max_bytes : p->bytes;
    }
    return n;
}

/* What programs can have: the total without what the driver keeps for itself. 0: not known. */
static double program_capacity_of(const struct tmk_device_memory *m)
{
    uint64_t kept = m->reserved_bytes == TMK_BYTES_UNKNOWN ? 0 : m->reserved_bytes;
    return m->total_bytes == TMK_BYTES_UNKNOWN || m->total_bytes < kept
               ? 0
               : (double)(m->total_bytes - kept);
}

struct tmk_device_forecast
tmk_watched_device_forecast(const struct tmk_watched_device *u,
                            const struct tmk_device_forecast_terms *terms)
{
    struct tmk_oom_forecast_point points[MOST_POINTS + 1];
    struct tmk_device_series series = {.label = u->label, .has_usage = u->has_now};
    if (u->has_now) {
        series.usage_percent = tmk_device_taken_percent(u);
        series.capacity_bytes = program_capacity_of(&u->now);
        series.points = points;
        series.n_points = reduce_history(&u->history, points);
    }
    return tmk_device_forecast_make(&series, terms);
}
