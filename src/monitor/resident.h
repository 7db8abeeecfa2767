/* SPDX-License-Identifier: MIT */
/* monitor/resident.h - what one process has of the host's memory, looked at again and again.
 *
 *     struct tmk_resident r;
 *     tmk_resident_init(&r, pid);
 *     rc = tmk_resident_look(&r, &roots, time_ns);
 *     ... tmk_growth_judge(&r.history) says whether it grows ...
 *     tmk_resident_fini(&r);
 *
 * A look is one small file of /proc, so it may be taken with every sample. */
#ifndef TMK_MONITOR_RESIDENT_H
#define TMK_MONITOR_RESIDENT_H

#include <sys/types.h>

#include "device/device.h"
#include "monitor/history.h"

struct tmk_resident {
    pid_t pid;
    uint64_t n_looks;                           /* answered; else the next three mean nothing */
    uint64_t first_bytes, now_bytes, max_bytes; /* now: as of the last look that was answered */
    struct tmk_history history;
};

void tmk_resident_init(struct tmk_resident *r, pid_t pid);
void tmk_resident_fini(struct tmk_resident *r);

/* A process that is not there leaves a gap. 0 or TMK_ENOMEM. */
int tmk_resident_look(struct tmk_resident *r, const struct tmk_device_roots *roots,
                      uint64_t time_ns);

#endif
