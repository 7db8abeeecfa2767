/* SPDX-License-Identifier: MIT */
/* fleet/otlp_json.h - metrics as OTLP/HTTP's JSON: the body of a POST to /v1/metrics.
 *
 * A metric has the name of the Prometheus one with '.' for '_' and without its unit, so that a
 * collector's Prometheus exporter makes the same name again. A device's memory is told a second
 * time by the names of OpenTelemetry's semantic conventions, hw.gpu.memory.limit, .usage and
 * .utilization, with the attributes hw.id, hw.name, hw.vendor and hw.model. */
#ifndef TMK_FLEET_OTLP_JSON_H
#define TMK_FLEET_OTLP_JSON_H

#include <stddef.h>
#include <stdint.h>

#include "fleet/node.h"

/* Write the body into memory that the caller frees. `now_ns`: Unix time. 0 or TMK_ENOMEM. */
int tmk_otlp_json(const struct tmk_node *node, const struct tmk_node_agent *agent, uint64_t now_ns,
                  char **ret_text, size_t *ret_n);

#endif
