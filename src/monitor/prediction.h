/* SPDX-License-Identifier: MIT */
/* monitor/prediction.h - will a device that is watched run out of memory? With all the fields that
 * the callback of Tiny Torch's OOMDetector is given. */
#ifndef TMK_MONITOR_PREDICTION_H
#define TMK_MONITOR_PREDICTION_H

#include "forecast/outlook.h"
#include "monitor/sampler.h"

struct tmk_prediction {
    const char *device_id;     /* its label; borrowed from the device */
    enum tmk_risk risk_level;  /* UNKNOWN: watched too shortly */
    bool has_time;             /* the next three and confidence are known */
    double predicted_oom_time; /* seconds from the last sample on */
    double predicted_low, predicted_high;
    double confidence;
    bool has_usage;
    double current_usage;        /* percent, with what the driver keeps */
    double trend_slope;          /* bytes a second; 0: it does not grow */
    enum tmk_growth_cause cause; /* what to do about it: tmk_growth_cause_advice() */
};

/* Programs that start fill memory steadily too: nothing shorter than that is an alarm. */
#define TMK_PREDICTION_WARM_UP_NS ((uint64_t)TMK_OUTLOOK_LEAST_NS)

/* Of all that was seen of the device. Takes about 0.1 ms, and more the longer its history is. */
struct tmk_prediction tmk_prediction_of(const struct tmk_watched_device *u, uint64_t warm_up_ns);

static inline bool tmk_prediction_is_alarm(const struct tmk_prediction *p)
{
    return p->risk_level == TMK_RISK_HIGH || p->risk_level == TMK_RISK_CRITICAL;
}

#endif
