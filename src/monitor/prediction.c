/* SPDX-License-Identifier: MIT */
/* monitor/prediction.c - see prediction.h. The history is drawn together to what outlook.c can use
 * of it, the highest of each part. */
#include "monitor/prediction.h"

#include "device/device.h"
#include "kit/amount.h"
#include "monitor/history.h"

enum { MOST_POINTS = 4 * TMK_OUTLOOK_POINTS };

/* Returns how many. */
static uint64_t draw(const struct tmk_history *h, struct tmk_outlook_point *ret)
{
    if (h->n == 0)
        return 0;
    uint64_t width = (h->n + MOST_POINTS - 1) / MOST_POINTS, n = 0;
    uint64_t first = h->n % width; /* where parts begin, so that the last is a whole one */
    for (uint64_t i = 0; i < h->n; i++) {
        const struct tmk_history_entry *e = &h->entries[i];
        struct tmk_outlook_point *p = &ret[n - (n > 0)];
        if (i == 0 || i % width == first) {
            p = &ret[n++];
            p->bytes = 0;
        }
        p->x = (double)e->end_ns;
        p->bytes = (double)e->max_bytes > p->bytes ? (double)e->max_bytes : p->bytes;
    }
    return n;
}

/* What programs can have: not what the driver keeps for itself. */
static double capacity_of(const struct tmk_device_memory *m)
{
    uint64_t kept = m->reserved_bytes == TMK_BYTES_UNKNOWN ? 0 : m->reserved_bytes;
    return m->total_bytes == TMK_BYTES_UNKNOWN || m->total_bytes < kept
               ? 0
               : (double)(m->total_bytes - kept);
}

static void take(struct tmk_prediction *p, const struct tmk_outlook *o)
{
    p->risk_level = o->risk;
    p->has_time = o->has_time;
    p->predicted_oom_time = o->to_oom / 1e9;
    p->predicted_low = o->low / 1e9;
    p->predicted_high = o->high / 1e9;
    p->confidence = o->confidence;
    p->trend_slope = o->slope * 1e9;
    p->cause = o->slope > 0                 ? TMK_GROWTH_STEADY
               : o->risk == TMK_RISK_MEDIUM ? TMK_GROWTH_NEARLY_FULL
                                            : TMK_GROWTH_NONE;
}

struct tmk_prediction tmk_prediction_of(const struct tmk_watched_device *u, uint64_t warm_up_ns)
{
    struct tmk_outlook_point points[MOST_POINTS + 1];
    struct tmk_prediction p = {.device_id = u->label, .has_usage = u->has_now};
    if (!u->has_now)
        return p;
    p.current_usage = tmk_device_taken_percent(u);
    struct tmk_outlook_terms terms = {.capacity_bytes = capacity_of(&u->now),
                                      .least_span = (double)warm_up_ns,
                                      .soon = TMK_OUTLOOK_SOON_NS};
    struct tmk_outlook o = tmk_outlook_look(points, draw(&u->history, points), &terms);
    take(&p, &o);
    return p;
}
