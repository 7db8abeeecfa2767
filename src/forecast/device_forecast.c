/* SPDX-License-Identifier: MIT */
/* forecast/device_forecast.c - see device_forecast.h. Times become seconds here. */
#include "forecast/device_forecast.h"

static void take_oom_forecast(struct tmk_device_forecast *f, const struct tmk_oom_forecast *oom)
{
    f->risk_level = oom->risk;
    f->has_trend = oom->risk != TMK_RISK_UNKNOWN;
    f->has_time = oom->has_time;
    f->predicted_oom_time = oom->to_oom / 1e9;
    f->predicted_low = oom->low / 1e9;
    f->predicted_high = oom->high / 1e9;
    f->confidence = oom->confidence;
    f->trend_slope = oom->slope * 1e9;
    f->cause = oom->risk < TMK_RISK_MEDIUM ? TMK_GROWTH_NONE
               : oom->has_time             ? TMK_GROWTH_STEADY
                                           : TMK_GROWTH_NEARLY_FULL;
}

/* What is so now outweighs the trend. */
static void take_device_state(struct tmk_device_forecast *f,
                              const struct tmk_device_forecast_terms *terms)
{
    bool is_full = f->current_usage >= TMK_DEVICE_FORECAST_FULL;
    if (!terms->had_oom && !is_full && f->current_usage < terms->threshold_percent)
        return;
    f->risk_level = TMK_RISK_CRITICAL;
    if (terms->had_oom)
        f->cause = TMK_GROWTH_RAN_OUT;
    else if (is_full)
        f->cause = TMK_GROWTH_FULL;
    else if (f->cause == TMK_GROWTH_NONE)
        f->cause = TMK_GROWTH_NEARLY_FULL;
}

struct tmk_device_forecast tmk_device_forecast_make(const struct tmk_device_series *series,
                                                    const struct tmk_device_forecast_terms *terms)
{
    struct tmk_device_forecast f = {.device_id = series->label, .has_usage = series->has_usage};
    if (!series->has_usage)
        return f;
    f.current_usage = series->usage_percent;
    struct tmk_oom_forecast_terms by_time = {.capacity_bytes = series->capacity_bytes,
                                             .least_span = (double)terms->warm_up_ns,
                                             .soon = TMK_OOM_FORECAST_SOON_NS,
                                             .is_by_time = true};
    struct tmk_oom_forecast oom = tmk_oom_forecast_make(series->points, series->n_points, &by_time);
    take_oom_forecast(&f, &oom);
    take_device_state(&f, terms);
    return f;
}
