/* SPDX-License-Identifier: MIT */
/* fleet/cluster/cluster_queries.h - the PromQL that tidemark fleet asks.
 *
 * Findings are the expressions of the alerts in deploy/prometheus/tidemark.alerts.yml. The series
 * of tidemark.rules.yml are written out in them: they hold where no rules are loaded, as with
 * VictoriaMetrics alone, and are never behind by an evaluation. tests/fleet/test_fleet_rules.py
 * proves that both say the same.
 *
 * In a text, $J stands for a matcher of the job, $W for the window, such as 3600s. */
#ifndef TMK_FLEET_CLUSTER_CLUSTER_QUERIES_H
#define TMK_FLEET_CLUSTER_CLUSTER_QUERIES_H

#include "fleet/cluster/cluster.h"
#include "kit/arena.h"

enum tmk_cluster_query {
    TMK_QUERY_FINDINGS, /* all of them, with the label `finding` */
    TMK_QUERY_AGENTS,
    TMK_QUERY_VERSIONS,
    TMK_QUERY_SCRAPES,
    TMK_QUERY_GPUS,
    TMK_QUERY_GPU_INFO,
    TMK_QUERY_RANKS,
    TMK_QUERY_RANK_INFO,
    TMK_QUERY_JOBS, /* with the label `figure` */
    TMK_QUERY_RULES,
    TMK_QUERY_MISSING, /* ranks that were seen in the window, and when */
    TMK_QUERIES
};

/* The text of a query, with $J and $W filled in; in the arena; NULL without memory. */
const char *tmk_cluster_query_text(struct tmk_arena *a, enum tmk_cluster_query query,
                                   const struct tmk_cluster_question *question);
/* A text as a string of PromQL, with its quotes; in the arena; NULL without memory. */
const char *tmk_promql_text(struct tmk_arena *a, const char *text);

#endif
