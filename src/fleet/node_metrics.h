/* SPDX-License-Identifier: MIT */
/* fleet/node_metrics.h - the metrics of a node: docs/fleet.md's tables as code. */
#ifndef TMK_FLEET_NODE_METRICS_H
#define TMK_FLEET_NODE_METRICS_H

#include "fleet/metric_sink.h"
#include "fleet/node.h"

/* Tell all metrics of `node` and of the agent. */
void tmk_node_metrics(const struct tmk_node *node, const struct tmk_node_agent *agent,
                      const struct tmk_metric_sink *sink);

#endif
