/* SPDX-License-Identifier: MIT */
/* monitor/watched_forecast.c - see watched_forecast.h.
 *
 * The history is reduced to as many points as a forecast can use: each is the maximum of a run of
 * neighbouring entries. The longer a device was watched, the longer is such a run, until a device
 * can be filled within a few of them. So where the whole history forecasts no OOM, its end is
 * looked at alone, a shorter and a shorter one, from where use is higher than ever before. What
 * only swings as it did before is no growth. */
#include "monitor/watched_forecast.h"

#include <stdbool.h>

#include "device/device.h"
#include "forecast/oom_forecast.h"
#include "kit/amount.h"
#include "monitor/history.h"

enum {
    MOST_POINTS = 4 * TMK_OOM_FORECAST_POINTS,
    END_PART = 4,                        /* an end is this part of the one before, */
    END_LEAST = TMK_OOM_FORECAST_POINTS, /* down to so many entries */
    PACE_PART = 600,                     /* a forecast is made for each such part of the time */
};
#define LEAST_PAUSE_NS 1000000000u

/* Reduce the entries from `begin` on. Returns how many points. */
static uint64_t reduce_history(const struct tmk_history *h, uint64_t begin,
                               struct tmk_oom_forecast_point *ret)
{
    uint64_t n_entries = h->n - begin, n = 0;
    if (n_entries == 0)
        return 0;
    uint64_t width = (n_entries + MOST_POINTS - 1) / MOST_POINTS;
    uint64_t first = n_entries % width; /* where runs begin, so that the last one is complete */
    for (uint64_t i = 0; i < n_entries; i++) {
        const struct tmk_history_entry *e = &h->entries[begin + i];
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

static struct tmk_device_forecast forecast_from(const struct tmk_watched_device *u, uint64_t begin,
                                                const struct tmk_device_forecast_terms *terms)
{
    struct tmk_oom_forecast_point points[MOST_POINTS + 1];
    struct tmk_device_series series = {.label = u->label, .has_usage = u->has_now};
    if (u->has_now) {
        series.usage_percent = tmk_device_taken_percent(u);
        series.capacity_bytes = program_capacity_of(&u->now);
        series.points = points;
        series.n_points = reduce_history(&u->history, begin, points);
    }
    return tmk_device_forecast_make(&series, terms);
}

/* Returns the first of the last `n` entries that is higher than all before these; h->n: there is
 * none. */
static uint64_t first_new_high(const struct tmk_history *h, uint64_t n)
{
    uint64_t before = 0, i = 0;
    for (; i < h->n - n; i++)
        before = h->entries[i].max_bytes > before ? h->entries[i].max_bytes : before;
    while (i < h->n && h->entries[i].max_bytes <= before)
        i++;
    return i;
}

struct tmk_device_forecast
tmk_watched_device_forecast(const struct tmk_watched_device *u,
                            const struct tmk_device_forecast_terms *terms)
{
    const struct tmk_history *h = &u->history;
    struct tmk_device_forecast whole = forecast_from(u, 0, terms);
    for (uint64_t n = h->n / END_PART; !whole.has_time && n >= END_LEAST; n /= END_PART) {
        struct tmk_device_forecast end = forecast_from(u, first_new_high(h, n), terms);
        if (end.has_time)
            return end;
    }
    return whole;
}

bool tmk_forecast_pace_is_due(const struct tmk_forecast_pace *pace, uint64_t elapsed_ns,
                              double percent)
{
    return elapsed_ns >= pace->due_ns ||
           (elapsed_ns >= pace->soonest_ns && percent >= pace->highest_percent + 1);
}

void tmk_forecast_pace_note(struct tmk_forecast_pace *pace, uint64_t elapsed_ns, double percent)
{
    uint64_t pause_ns = elapsed_ns / PACE_PART;
    pace->soonest_ns = elapsed_ns + LEAST_PAUSE_NS;
    pace->due_ns = elapsed_ns + (pause_ns > LEAST_PAUSE_NS ? pause_ns : LEAST_PAUSE_NS);
    if (percent > pace->highest_percent)
        pace->highest_percent = percent;
}
