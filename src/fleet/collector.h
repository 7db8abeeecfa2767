/* SPDX-License-Identifier: MIT */
/* fleet/collector.h - look at the node again and again: devices, processes, watched processes.
 *
 * Looking takes as long as drivers and file systems do, so it belongs on a thread of its own.
 * Listing the watched processes reads /proc of every process and is repeated the more seldom the
 * longer it took. A watched process is followed (job_follower.h); one that has ended stays for
 * TMK_JOB_LINGER_S with its totals, so that an OOM in its last seconds is still scraped. */
#ifndef TMK_FLEET_COLLECTOR_H
#define TMK_FLEET_COLLECTOR_H

#include "base/error.h"
#include "fleet/node.h"

enum { TMK_JOB_LINGER_S = 60 };

struct tmk_collector_settings {
    uint64_t interval_ns;   /* between looks */
    const char *host;       /* NULL: the machine's name */
    unsigned max_processes; /* of a device, not folded */
    unsigned max_jobs;
    bool wants_blocks; /* categories and fragmentation */
};

struct tmk_collector;

int tmk_collector_open(const struct tmk_collector_settings *settings,
                       struct tmk_collector **ret_collector, struct tmk_error *err);
struct tmk_collector *tmk_collector_close(struct tmk_collector *c); /* takes NULL */

/* Fill in *node, which is zeroed or was filled in before. 0 or TMK_ENOMEM. */
int tmk_collector_look(struct tmk_collector *c, struct tmk_node *node, struct tmk_error *err);
void tmk_node_fini(struct tmk_node *node);

#endif
