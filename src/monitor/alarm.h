/* SPDX-License-Identifier: MIT */
/* monitor/alarm.h - notice when a share passes a threshold, once each time.
 *
 * A value that fluctuates around the threshold must not ring at every sample. After it rang, the
 * alarm rings again only if the share was two points below the threshold in between. For a
 * threshold under four, half of it is enough, because nothing would be low enough otherwise. */
#ifndef TMK_MONITOR_ALARM_H
#define TMK_MONITOR_ALARM_H

#include <stdbool.h>
#include <stdint.h>

#define TMK_ALARM_BACK_PERCENT 2.0

struct tmk_alarm {
    double threshold_percent;
    bool is_over;      /* it rang, and the share has not been well below since */
    uint64_t n_passed; /* how often it rang */
};

/* The share at which the alarm is ready to ring again. */
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
