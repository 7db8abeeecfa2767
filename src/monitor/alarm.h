/* SPDX-License-Identifier: MIT */
/* monitor/alarm.h - notice when a share passes a threshold, once each time.
 *
 * A value that trembles around the threshold must not ring at every sample: after it has rung, the
 * alarm rings again only when the share has been two points below in between. */
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

/* True when it rings: the share reached the threshold. */
static inline bool tmk_alarm_look(struct tmk_alarm *a, double percent)
{
    if (a->is_over) {
        a->is_over = percent > a->threshold_percent - TMK_ALARM_BACK_PERCENT;
        return false;
    }
    a->is_over = percent >= a->threshold_percent;
    a->n_passed += a->is_over;
    return a->is_over;
}

#endif
