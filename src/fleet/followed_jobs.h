/* SPDX-License-Identifier: MIT */
/* fleet/followed_jobs.h - the watched processes of the node, each followed, at most so many. */
#ifndef TMK_FLEET_FOLLOWED_JOBS_H
#define TMK_FLEET_FOLLOWED_JOBS_H

#include "base/error.h"
#include "fleet/node.h"
#include "fleet/process_facts.h"

struct tmk_followed_job {
    struct tmk_node_job job; /* all but `device` of its uses */
    struct tmk_process_facts facts;
};

struct tmk_followed_totals {
    uint64_t n;         /* followed, ended ones included */
    uint64_t n_watched; /* found */
    uint64_t n_folded;  /* of these, not followed: there were too many */
};

struct tmk_followed_jobs;

/* Open; NULL: no memory. */
struct tmk_followed_jobs *tmk_followed_jobs_open(unsigned most, bool wants_blocks);
struct tmk_followed_jobs *tmk_followed_jobs_close(struct tmk_followed_jobs *jobs); /* takes NULL */

/* Read on in all of them; find new ones when that is due. 0 or TMK_ENOMEM. */
int tmk_followed_jobs_look(struct tmk_followed_jobs *jobs, struct tmk_followed_totals *ret,
                           struct tmk_error *err);
/* By PID; borrowed until look. */
const struct tmk_followed_job *tmk_followed_jobs_get(const struct tmk_followed_jobs *jobs,
                                                     uint64_t i);

#endif
