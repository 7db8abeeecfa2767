/* SPDX-License-Identifier: MIT */
/* forecast/device_forecast.h - forecast whether a watched device runs out of memory.
 *
 * The caller gives the device's use over time as points; the result has all the fields that the
 * callback of Tiny Torch's OOMDetector receives. monitor/watched_forecast.h makes the points from
 * what a sampler has seen. */
#ifndef TMK_FORECAST_DEVICE_FORECAST_H
#define TMK_FORECAST_DEVICE_FORECAST_H

#include "forecast/oom_forecast.h"

/* A device's use over time. */
struct tmk_device_series {
    const char *label;                           /* borrowed */
    bool has_usage;                              /* the device answered when it was last asked */
    double usage_percent;                        /* includes what the driver keeps for itself */
    double capacity_bytes;                       /* for programs; 0: not known */
    const struct tmk_oom_forecast_point *points; /* x is a time in ns */
    uint64_t n_points;
};

struct tmk_device_forecast_terms {
    uint64_t warm_up_ns;      /* growth seen for less is no alarm, unless the OOM is at hand */
    double threshold_percent; /* of use: from there on the risk is critical, whatever the trend */
    bool had_oom;             /* a process on the device has just run out of memory */
};

struct tmk_device_forecast {
    const char *device_id;     /* the series' label, borrowed */
    enum tmk_risk risk_level;  /* UNKNOWN: watched too shortly */
    bool has_trend;            /* trend_slope is known */
    bool has_time;             /* the next three and confidence are known */
    double predicted_oom_time; /* seconds after the last sample */
    double predicted_low, predicted_high;
    double confidence;
    bool has_usage;
    double current_usage;        /* percent, including what the driver keeps */
    double trend_slope;          /* bytes a second; 0: use does not grow */
    enum tmk_growth_cause cause; /* NONE below medium risk */
};

/* A program that starts fills memory steadily too, so growth over a shorter time is no alarm. */
#define TMK_DEVICE_FORECAST_WARM_UP_NS ((uint64_t)TMK_OOM_FORECAST_LEAST_NS)
#define TMK_DEVICE_FORECAST_THRESHOLD 85.0 /* percent in use, unless told otherwise */
#define TMK_DEVICE_FORECAST_FULL 99.0      /* percent: only small requests may still succeed */

struct tmk_device_forecast tmk_device_forecast_make(const struct tmk_device_series *series,
                                                    const struct tmk_device_forecast_terms *terms);

/* Sentence `i` of what to do at that risk for that cause; NULL: there are no more. */
const char *tmk_device_forecast_advice(const struct tmk_device_forecast *f, unsigned i);
/* The same in Chinese. */
const char *tmk_device_forecast_advice_zh(const struct tmk_device_forecast *f, unsigned i);

static inline bool tmk_device_forecast_is_alarm(const struct tmk_device_forecast *f)
{
    return f->risk_level == TMK_RISK_HIGH || f->risk_level == TMK_RISK_CRITICAL;
}

#endif
