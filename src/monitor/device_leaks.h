/* SPDX-License-Identifier: MIT */
/* monitor/device_leaks.h - who grows: every device that was looked at, and every process on it. */
#ifndef TMK_MONITOR_DEVICE_LEAKS_H
#define TMK_MONITOR_DEVICE_LEAKS_H

#include "monitor/growth.h"
#include "monitor/sampler.h"

struct tmk_leak_row {
    const struct tmk_watched_device *device;
    const struct tmk_process_use *process; /* NULL: the device as a whole */
    struct tmk_growth growth;
    bool is_leak;
};

struct tmk_leaks {
    struct tmk_leak_row *rows;          /* leaks first, then by growth, largest first */
    uint64_t n, n_leaks, n_known, room; /* known: watched for long enough */
    uint64_t threshold_bytes;
};

/* Of what the sampler has seen; rows are good until its next look. A process that was there for
 * less than half of the time is not judged: programs grow while they start. One that has ended is
 * judged over its own life: what kept it short may have been the leak. 0 or TMK_ENOMEM; fini
 * in both cases. */
int tmk_leaks_find(const struct tmk_sampler *s, uint64_t threshold_bytes, struct tmk_leaks *ret);
void tmk_leaks_fini(struct tmk_leaks *leaks);

#endif
