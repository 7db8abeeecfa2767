/* SPDX-License-Identifier: MIT */
/* monitor/status.h - the monitors' JSON: the memory status report of Tiny Torch's memory tools, key
 * by key, so that scripts written for those continue to work.
 *
 *     {"timestamp": "2025-01-15T10:30:00",                  local time
 *      "devices": {"0": {"current_usage": {"allocated", "free", "total", "utilization_percent"},
 *                        "statistics": {"avg_utilization", "max_utilization", "samples_count"}}},
 *      "summary": {"total_devices", "total_memory_gb", "overall_utilization"}}
 *
 * Those keys keep their meaning and type; tidemark adds further keys. A GB is 1024^3 bytes. Unknown
 * values are null. */
#ifndef TMK_MONITOR_STATUS_H
#define TMK_MONITOR_STATUS_H

#include <time.h>

#include "forecast/device_forecast.h"
#include "kit/tree.h"
#include "monitor/alarm.h"
#include "monitor/device_jobs.h"
#include "monitor/device_leaks.h"
#include "monitor/resident.h"
#include "monitor/sampler.h"

enum { TMK_ISO_BYTES = 32 };

struct tmk_monitor_status {
    const struct tmk_sampler *sampler;
    time_t started, now;
    uint64_t elapsed_ns;
    uint64_t warm_up_ns, least_ns;      /* for forecasts, for growth */
    const struct tmk_alarm *alarms;     /* by device; NULL: no threshold was watched for */
    const struct tmk_device_jobs *jobs; /* by device; NULL: watched processes were not looked at */
    const struct tmk_leaks *leaks;      /* NULL: leaks were not looked for */
    const struct tmk_resident *process; /* NULL: no process's host memory was watched */
};

/* Write a local time as "2025-01-15T10:30:00" to the caller's buffer of TMK_ISO_BYTES, and return
 * it. */
const char *tmk_iso_text(time_t t, char *buffer);

void tmk_monitor_status_write(struct tmk_tree *t, const struct tmk_monitor_status *status);

/* Write a device's forecast with that tool's keys. `jobs` NULL: watched processes were not looked
 * at. */
void tmk_device_forecast_write(struct tmk_tree *t, const char *key,
                               const struct tmk_watched_device *u, const struct tmk_alarm *alarm,
                               const struct tmk_device_forecast *p,
                               const struct tmk_device_jobs *jobs);

/* Write "verdict", "verdict_reason" and "leaks" into the open object, then "watched": every device
 * and process that was watched. */
void tmk_leaks_write(struct tmk_tree *t, const struct tmk_leaks *leaks, uint64_t elapsed_ns);

#endif
