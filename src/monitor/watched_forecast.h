/* SPDX-License-Identifier: MIT */
/* monitor/watched_forecast.h - the forecast for a device that a sampler watches. */
#ifndef TMK_MONITOR_WATCHED_FORECAST_H
#define TMK_MONITOR_WATCHED_FORECAST_H

#include "forecast/device_forecast.h"
#include "monitor/sampler.h"

/* Forecast from the device's whole history. Takes about 0.1 ms, and longer for a longer history. */
struct tmk_device_forecast
tmk_watched_device_forecast(const struct tmk_watched_device *u,
                            const struct tmk_device_forecast_terms *terms);

#endif
