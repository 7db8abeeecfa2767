/* SPDX-License-Identifier: MIT */
/* monitor/alarm.h - notice when a share passes a threshold, once each time.
 *
 * A value that trembles around the threshold must not ring at every sample: after it has rung, the
 * alarm rings again only when the share has been two points below in between; of a threshold under
 * four, half of it, or nothing would be low enough. */
#ifndef TMK_MONITOR_ALARM_H
#define TMK_MONITOR_ALARM_H

#include <stdbool.h>
#include <stdint.h>

#define TMK_ALARM_BACK_PERCENT 2.0

struct tmk_alarm {
    double threshold_percent;
    bool is_over;      /* rang, and has not been well below since */
    uint64_t n_passed; /* how often it rang */
};

/* The share at which it is ready to ring again. */
static inline double tmk_alarm_back_percent(const struct tmk_alarm *a)
{
    double half = a->threshold_percent / 2;
    return a->threshold_percent - (half < TMK_ALARM_BACK_PERCENT ? half : TMK_ALARM_BACK_PERCENT);
}

/* True when it rings: the share reached the threshold. */
static inline bool tmk_alarm_look(struct tmk_alarm *a, double percent)
{
    if (a->is_over) {
        a->is_over = percent > tmk_alarm_back_percent(a);
        return false;
    }
    a->is_over = percent >= a->threshold_percent;
    a->n_passed += a->is_over;
    return a->is_over;
}

#endif
