/* SPDX-License-Identifier: MIT */
/* passes/forecast_samples.h - what the driver reported of each device over a run, in bounded
 * memory.
 *
 * It is a visitor for a sweep; forecast.h uses what it gathered. When a device's entries are
 * full, neighbours are merged two by two and the higher value is kept. */
#ifndef TMK_PASSES_FORECAST_SAMPLES_H
#define TMK_PASSES_FORECAST_SAMPLES_H

#include "trace/replay.h"

enum { TMK_FORECAST_SAMPLES = 1024 };

struct tmk_device_sample {
    uint64_t time_ns;                  /* trace time */
    uint64_t used_bytes, others_bytes; /* others: UINT64_MAX when not known */
};

struct tmk_device_samples {
    uint16_t device;
    uint64_t total_bytes;
    uint32_t n;
    uint32_t width, n_in_last; /* samples of an entry; that the last has so far */
    struct tmk_device_sample items[TMK_FORECAST_SAMPLES];
};

struct tmk_forecast_samples;

/* Returns 0 or TMK_ENOMEM. close takes NULL and returns NULL. */
int tmk_forecast_samples_open(struct tmk_forecast_samples **ret);
struct tmk_forecast_samples *tmk_forecast_samples_close(struct tmk_forecast_samples *s);
struct tmk_visitor tmk_forecast_samples_visitor(struct tmk_forecast_samples *s);

/* The samples of a device; NULL: there are none. */
const struct tmk_device_samples *tmk_forecast_samples_get(const struct tmk_forecast_samples *s,
                                                          uint16_t device);

#endif
