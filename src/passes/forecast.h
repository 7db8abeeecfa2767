/* SPDX-License-Identifier: MIT */
/* passes/forecast.h - a forecast of when a process runs out of a device's memory, and why.
 *
 *     struct tmk_forecast list[TMK_MAX_DEVICES];
 *     rc = tmk_forecast_list(p, NULL, list, &n, &err);
 *
 * The forecast comes from the per-step history, which every trace has in full: it sets the peaks
 * of allocated memory against what the process can have of the device. That is what was free
 * plus what the process's allocator had reserved when the driver was asked last; less where an
 * OOM revealed a limit; on the host, what was available when the process began. It needs no
 * sweep, so it is cheap enough for lists of processes.
 *
 * With samples (forecast_samples.h, which take a sweep) two more things are seen: that other
 * processes take the device, and how a process without steps grows. docs/forecast.md says what
 * the words mean. */
#ifndef TMK_PASSES_FORECAST_H
#define TMK_PASSES_FORECAST_H

#include "forecast/oom_forecast.h"
#include "model/run.h"
#include "passes/forecast_samples.h"

struct tmk_forecast {
    uint16_t device;
    enum tmk_risk risk;
    enum tmk_growth_cause cause;
    uint64_t capacity_bytes; /* 0: not known, and then nothing else is but highest */
    uint64_t highest_bytes;  /* of the peaks */
    double slope;            /* bytes a step, or with !by_step a second; 0: it does not grow */
    enum tmk_growth_shape shape;
    bool has_oom; /* an OOM is among the last events: the next two are known */
    uint64_t oom_ns;
    int64_t oom_step; /* TMK_NO_STEP: it came in none */
    bool has_run_out; /* the process ended in that step, so it is no forecast: the time is 0 */
    bool by_step;
    bool has_time;       /* the next four are known */
    double steps_to_oom; /* by_step */
    double seconds_to_oom, seconds_low, seconds_high;
    bool has_confidence;
    double confidence;
};

/* Write one forecast a device, at most TMK_MAX_DEVICES. `samples` may be NULL. Returns 0 or
 * TMK_ENOMEM. */
int tmk_forecast_list(const struct tmk_process *p, const struct tmk_forecast_samples *samples,
                      struct tmk_forecast *ret, uint32_t *ret_n, struct tmk_error *err);

/* Write the forecast of one device, likewise. */
int tmk_forecast_of(const struct tmk_process *p, uint16_t device,
                    const struct tmk_forecast_samples *samples, struct tmk_forecast *ret);

/* Write "high: in 3 min 05 s (0.87)" or "low" into the caller's buffer of
 * TMK_FORECAST_TEXT_BYTES; "-" where nothing is known. `is_short` gives "high 3 min 05 s". */
enum { TMK_FORECAST_TEXT_BYTES = 80 };
const char *tmk_forecast_text(const struct tmk_forecast *f, bool is_short, char *buffer);

#endif
