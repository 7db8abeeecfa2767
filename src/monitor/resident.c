/* SPDX-License-Identifier: MIT */
/* monitor/resident.c - see resident.h. */
#include "monitor/resident.h"

#include "device/host.h"

enum { MOST_ENTRIES = 512 }; /* 24 KiB, enough for the thirty parts that growth.c judges */

void tmk_resident_init(struct tmk_resident *r, pid_t pid)
{
    *r = (struct tmk_resident){.pid = pid};
    tmk_history_init(&r->history, MOST_ENTRIES);
}

void tmk_resident_fini(struct tmk_resident *r)
{
    tmk_history_fini(&r->history);
}

int tmk_resident_look(struct tmk_resident *r, const struct tmk_device_roots *roots,
                      uint64_t time_ns)
{
    uint64_t bytes = tmk_host_resident_bytes(roots, r->pid);
    if (!bytes) {
        tmk_history_gap(&r->history);
        return 0;
    }
    if (r->n_looks++ == 0)
        r->first_bytes = bytes;
    r->now_bytes = bytes;
    r->max_bytes = bytes > r->max_bytes ? bytes : r->max_bytes;
    return tmk_history_add(&r->history, time_ns, bytes);
}
