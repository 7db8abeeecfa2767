/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_agent.c - the agent of a node, which Prometheus scrapes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/output/say.h"
#include "fleet/agent.h"
#include "kit/amount.h"

#define NS_PER_S 1000000000u
#define LEAST_INTERVAL_NS ((uint64_t)NS_PER_S / 10)
#define MOST_INTERVAL_NS (3600 * (uint64_t)NS_PER_S)

static void say_text(const char *text)
{
    tmk_say("%s", text);
}

static int take_interval(const struct tmk_args *args, const char *option, uint64_t *ret_ns)
{
    const char *text = tmk_args_get(args, option);
    if (!text)
        return 0;
    if (tmk_seconds_parse(text, ret_ns) == 0 && *ret_ns >= LEAST_INTERVAL_NS &&
        *ret_ns <= MOST_INTERVAL_NS)
        return 0;
    tmk_say("--%s: '%s' is not a time from 0.1 s to 1 h, such as 5 or 500ms", option, text);
    return TMK_EXIT_USAGE;
}

static int take_count(const struct tmk_args *args, const char *option, unsigned *ret)
{
    const char *text = tmk_args_get(args, option);
    if (!text)
        return 0;
    size_t n = strspn(text, "0123456789");
    if (n == 0 || n > 4 || text[n]) {
        tmk_say("--%s: '%s' is not a number from 0 to 9999", option, text);
        return TMK_EXIT_USAGE;
    }
    *ret = (unsigned)strtoul(text, NULL, 10);
    return 0;
}

static const char *option_or_environment(const struct tmk_args *args, const char *option,
                                         const char *name)
{
    const char *value = tmk_args_get(args, option);
    if (!value)
        value = getenv(name);
    return value && *value ? value : NULL;
}

static int run_agent(const struct tmk_args *args)
{
    struct tmk_error err = {0};
    struct tmk_agent_settings s = {
        .collecting = {.interval_ns = 5 * (uint64_t)NS_PER_S,
                       .host = tmk_args_get(args, "host"),
                       .max_processes = 16,
                       .max_jobs = 64,
                       .wants_blocks = !tmk_args_get(args, "no-blocks")},
        .listen = tmk_args_get(args, "listen"),
        .web_config = tmk_args_get(args, "web-config"),
        .otlp_url = option_or_environment(args, "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT"),
        .otlp_headers = getenv("OTEL_EXPORTER_OTLP_HEADERS"),
        .otlp_ca_file = getenv("OTEL_EXPORTER_OTLP_CERTIFICATE"),
        .otlp_interval_ns = 60 * (uint64_t)NS_PER_S,
        .say = say_text,
    };
    int status = take_interval(args, "interval", &s.collecting.interval_ns);
    if (status == 0)
        status = take_interval(args, "otlp-interval", &s.otlp_interval_ns);
    if (status == 0)
        status = take_count(args, "max-processes", &s.collecting.max_processes);
    if (status == 0)
        status = take_count(args, "max-jobs", &s.collecting.max_jobs);
    if (status != 0)
        return status;
    if (!s.listen)
        s.listen = "127.0.0.1:9742";
    int rc = tmk_agent_run(&s, &err);
    if (rc == 0)
        return TMK_EXIT_OK;
    tmk_say("%s", err.text);
    return rc == TMK_EINVAL ? TMK_EXIT_USAGE : TMK_EXIT_FINDING;
}

static const struct tmk_option options[] = {
    {"listen", 0, "ADDR", NULL, "where to answer: HOST:PORT (127.0.0.1:9742)"},
    {"web-config", 0, "FILE", NULL, "TLS and passwords, as for Prometheus' exporters"},
    {"otlp", 0, "URL", NULL, "also push to an OpenTelemetry collector"},
    {"otlp-interval", 0, "S", NULL, "seconds between pushes (60)"},
    TMK_OPTION_HEADING("what is served"),
    {"interval", 0, "S", NULL, "seconds between looks at devices and traces (5)"},
    {"host", 0, "NAME", NULL, "the label host (the machine's name)"},
    {"max-processes", 0, "N", NULL, "at most N processes of a device get a series (16)"},
    {"max-jobs", 0, "N", NULL, "follow at most N recorded processes (64)"},
    {"no-blocks", 0, NULL, NULL, "without categories and fragmentation"},
};

static const char *const description[] = {
    "Run one agent on each node. It samples the devices, the processes on them, and the "
    "recorded processes, and answers GET /metrics for Prometheus: as OpenMetrics or as classic "
    "text, whichever is asked for. GET /healthz says whether it still sees the devices. "
    "docs/fleet.md lists the metrics, and the rules, alerts and dashboard that go with them.",
    "Any user can run it. It sees the recorded processes of that user, or as root those of all "
    "users. It asks nothing of them: it reads their traces, which are at most some seconds "
    "behind.",
    "It listens on this machine only, unless --listen says otherwise; :PORT alone listens "
    "everywhere. Then give it a --web-config: the file with tls_server_config and "
    "basic_auth_users that Prometheus' own exporters read. It is read again when it changes.",
    "--otlp http://HOST:4318, or OTEL_EXPORTER_OTLP_ENDPOINT, pushes the same metrics and "
    "hw.gpu.* as OTLP/HTTP JSON. OTEL_EXPORTER_OTLP_HEADERS and OTEL_EXPORTER_OTLP_CERTIFICATE "
    "have their usual meaning.",
    NULL,
};

static const char *const examples[] = {
    "tidemark agent",
    "for a Prometheus on this machine",
    "tidemark agent --listen :9742 --web-config /etc/tidemark/web.yml",
    "for one elsewhere, with TLS and a password",
    "curl -s localhost:9742/metrics | grep oom_seconds",
    "which jobs are heading for an OOM, and when",
    NULL,
};

const struct tmk_command tmk_cmd_agent = {
    .name = "agent",
    .group = TMK_GROUP_CLUSTER,
    .summary = "Serve this node's GPUs and recorded jobs to Prometheus",
    .usage = "[options]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .operand = TMK_OPERAND_NONE,
    .examples = examples,
    .writes_data = true,
    .run = run_agent,
};
