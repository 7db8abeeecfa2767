/* SPDX-License-Identifier: MIT */
/* monitor/resident.h - one process's resident memory on the host, sampled repeatedly.
 *
 *     struct tmk_resident r;
 *     tmk_resident_init(&r, pid);
 *     rc = tmk_resident_look(&r, &roots, time_ns);
 *     ... tmk_growth_judge(&r.history) says whether it grows ...
 *     tmk_resident_fini(&r);
 *
 * A look reads one small file of /proc, so it may be taken with every sample. */
#ifndef TMK_MONITOR_RESIDENT_H
#define TMK_MONITOR_RESIDENT_H

#include <sys/types.h>

#include "device/device.h"
#include "monitor/history.h"

struct tmk_resident {
    pid_t pid;
    uint64_t n_looks; /* looks that were answered; 0: the next three are not set */
    uint64_t first_bytes, now_bytes, max_bytes; /* now: at the last look that was answered */
    struct tmk_history history;
};

void tmk_resident_init(struct tmk_resident *r, pid_t pid);
void tmk_resident_fini(struct tmk_resident *r);

/* Take a look. A process that is not there leaves a gap. 0 or TMK_ENOMEM. */
int tmk_resident_look(struct tmk_resident *r, const struct tmk_device_roots *roots,
                      uint64_t time_ns);

#endif
