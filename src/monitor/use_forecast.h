/* SPDX-License-Identifier: MIT */
/* monitor/use_forecast.h - the forecast for a device that a sampler watches. */
#ifndef TMK_MONITOR_USE_FORECAST_H
#define TMK_MONITOR_USE_FORECAST_H

#include "forecast/device_forecast.h"
#include "monitor/sampler.h"

/* Forecast from the device's whole history. Growth over less than `warm_up_ns` is no alarm. Takes
 * about 0.1 ms, and longer for a longer history. */
struct tmk_device_forecast tmk_device_use_forecast(const struct tmk_device_use *u,
                                                   uint64_t warm_up_ns);

#endif
