/* SPDX-License-Identifier: MIT */
/* fleet/cluster/cluster_parts.h - what the files of cluster.h share. */
#ifndef TMK_FLEET_CLUSTER_CLUSTER_PARTS_H
#define TMK_FLEET_CLUSTER_CLUSTER_PARTS_H

#include "fleet/cluster/cluster.h"

/* cluster.c: the one copy of a text; NULL for NULL, or without memory. */
const char *tmk_cluster_text(struct tmk_cluster *c, const char *text);
/* cluster.c: a new finding with nothing known; NULL without memory. */
struct tmk_cluster_finding *tmk_cluster_add_finding(struct tmk_cluster *c);

/* cluster.c: give each rank its job's row, and write the number of its process. 0 or TMK_ENOMEM. */
int tmk_cluster_number_rows(struct tmk_cluster *c, uint32_t *process_of);

/* cluster_gaps.c: add a finding for each time in which an agent has no samples. 0, TMK_EIO or
 * TMK_ENOMEM. */
int tmk_cluster_find_gaps(struct tmk_cluster *c, struct tmk_prometheus *p,
                          const struct tmk_cluster_question *question, struct tmk_error *err);

/* cluster_missing.c: say of each job with missing ranks where these were seen last. Likewise. */
int tmk_cluster_find_missing(struct tmk_cluster *c, struct tmk_prometheus *p,
                             const struct tmk_cluster_question *question, struct tmk_error *err);

/* cluster_sums.c: fill in what agents and jobs have together, and each rank's place in its job. 0
 * or TMK_ENOMEM. */
int tmk_cluster_sum_up(struct tmk_cluster *c);

/* cluster_tell.c: write the sentence of each finding. 0 or TMK_ENOMEM. */
int tmk_cluster_tell(struct tmk_cluster *c);

#endif
