/* SPDX-License-Identifier: MIT */
/* monitor/device_leaks.h - judge growth for every watched device, and for every process on it. */
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
    uint64_t n, n_leaks, n_known, room; /* n_known: watched for long enough */
    uint64_t threshold_bytes, least_ns;
};

/* Judge everything that the sampler has seen. The rows are valid until its next look. Programs grow
 * while they start, so nothing is judged that was watched for less than `least_ns`; of a process
 * that came meanwhile its first `least_ns` are left out, and it is not judged when that leaves less
 * than half of the time. A process that has ended is judged over its own life, because the leak may
 * have ended it. 0 or TMK_ENOMEM; call fini in both cases. */
int tmk_leaks_find(const struct tmk_sampler *s, uint64_t threshold_bytes, uint64_t least_ns,
                   struct tmk_leaks *ret);
/* Why there is no verdict, for people and in JSON: writes a sentence to the caller's buffer and
 * returns it; NULL: there is a verdict. */
enum { TMK_LEAKS_REASON_BYTES = 160 };
const char *tmk_leaks_reason(const struct tmk_leaks *leaks, uint64_t elapsed_ns, char *buffer);
void tmk_leaks_fini(struct tmk_leaks *leaks);

#endif
