/* SPDX-License-Identifier: MIT */
/* monitor/watched_forecast.h - the forecast for a device that a sampler watches. */
#ifndef TMK_MONITOR_WATCHED_FORECAST_H
#define TMK_MONITOR_WATCHED_FORECAST_H

#include <stdbool.h>
#include <stdint.h>

#include "forecast/device_forecast.h"
#include "monitor/sampler.h"

/* Forecast from the device's history. Takes about 0.1 ms, and longer for a longer history. */
struct tmk_device_forecast
tmk_watched_device_forecast(const struct tmk_watched_device *u,
                            const struct tmk_device_forecast_terms *terms);

/* When a forecast is worth making again: the longer a device was watched, the slower its outlook
 * changes and the longer a forecast takes; where use gets higher than at any forecast before, by a
 * hundredth of the device, it is made again after a second. Starts as {0}: due. */
struct tmk_forecast_pace {
    uint64_t due_ns, soonest_ns; /* since the first sample */
    double highest_percent;      /* of use, at all forecasts so far */
};

bool tmk_forecast_pace_is_due(const struct tmk_forecast_pace *pace, uint64_t elapsed_ns,
                              double percent);
/* A forecast is made now. */
void tmk_forecast_pace_note(struct tmk_forecast_pace *pace, uint64_t elapsed_ns, double percent);

#endif
