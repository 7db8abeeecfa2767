/* SPDX-License-Identifier: MIT */
/* fleet/agent.h - the agent of a node: it looks at the node on a thread of its own, and answers
 * scrapes with what it saw last, so that an answer takes a millisecond whatever a driver or a file
 * system does. */
#ifndef TMK_FLEET_AGENT_H
#define TMK_FLEET_AGENT_H

#include "base/error.h"
#include "fleet/collector.h"

struct tmk_agent_settings {
    struct tmk_collector_settings collecting;
    const char *listen;
    const char *web_config;   /* NULL: none */
    const char *otlp_url;     /* NULL: nothing is pushed */
    const char *otlp_headers; /* NULL: none */
    const char *otlp_ca_file; /* NULL: the system's authorities */
    uint64_t otlp_interval_ns;
    void (*say)(const char *text); /* a sentence for the log */
};

/* Run until SIGINT or SIGTERM. 0; TMK_EINVAL: a setting is wrong; else another TMK_E*. */
int tmk_agent_run(const struct tmk_agent_settings *settings, struct tmk_error *err);

#endif
