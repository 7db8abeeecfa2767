/* SPDX-License-Identifier: MIT */
/* forecast/device_forecast.c - see device_forecast.h. Times become seconds here. */
#include "forecast/device_forecast.h"

static void take_oom_forecast(struct tmk_device_forecast *f, const struct tmk_oom_forecast *oom)
{
    f->risk_level = oom->risk;
    f->has_time = oom->has_time;
    f->predicted_oom_time = oom->to_oom / 1e9;
    f->predicted_low = oom->low / 1e9;
    f->predicted_high = oom->high / 1e9;
    f->confidence = oom->confidence;
    f->trend_slope = oom->slope * 1e9;
    f->cause = oom->slope > 0                 ? TMK_GROWTH_STEADY
               : oom->risk == TMK_RISK_MEDIUM ? TMK_GROWTH_NEARLY_FULL
                                              : TMK_GROWTH_NONE;
}

struct tmk_device_forecast tmk_device_forecast_make(const struct tmk_device_series *series,
                                                    uint64_t warm_up_ns)
{
    struct tmk_device_forecast f = {.device_id = series->label, .has_usage = series->has_usage};
    if (!series->has_usage)
        return f;
    f.current_usage = series->usage_percent;
    struct tmk_oom_forecast_terms terms = {.capacity_bytes = series->capacity_bytes,
                                           .least_span = (double)warm_up_ns,
                                           .soon = TMK_OOM_FORECAST_SOON_NS};
    struct tmk_oom_forecast oom = tmk_oom_forecast_make(series->points, series->n_points, &terms);
    take_oom_forecast(&f, &oom);
    return f;
}
