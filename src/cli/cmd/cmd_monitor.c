/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_monitor.c - all monitors in one: profile, oom, leak, fragmentation. */
#include "base/array.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/live/follow.h"
#include "cli/live/monitor_report.h"
#include "cli/live/monitoring.h"
#include "cli/live/oom_watch.h"
#include "cli/live/watched_jobs.h"
#include "cli/output/say.h"
#include "forecast/device_forecast.h"
#include "model/watched.h"
#include "monitor/device_leaks.h"
#include "monitor/growth.h"
#include "monitor/status.h"

#define DEFAULT_LEAK_BYTES (100ull << 20)

static int report_profile(struct tmk_monitoring *m, const struct tmk_args *args)
{
    int status = tmk_monitoring_run(m, NULL, NULL);
    if (status != 0)
        return status;
    struct tmk_monitor_status report = tmk_monitoring_status(m);
    return tmk_monitor_report(&report, args);
}

/* Set up the watch with the threshold and the warm-up that were asked for; *ret_least_ns: for
 * growth. 0, or an exit status after a message. */
static int init_watch(struct tmk_oom_watch *w, struct tmk_monitoring *m,
                      const struct tmk_args *args, FILE *out, uint64_t *ret_least_ns)
{
    double threshold;
    uint64_t warm_up_ns = TMK_DEVICE_FORECAST_WARM_UP_NS;
    int status =
        tmk_monitoring_number(args, "threshold", TMK_DEVICE_FORECAST_THRESHOLD, 100, &threshold);
    if (status == 0)
        status = tmk_monitoring_time(args, "warm-up", &warm_up_ns);
    if (status != 0)
        return status;
    tmk_oom_watch_init(w, m, threshold, NULL, out);
    tmk_oom_watch_begin_jobs(w);
    w->warm_up_ns = warm_up_ns;
    *ret_least_ns = warm_up_ns < TMK_GROWTH_LEAST_NS ? warm_up_ns : TMK_GROWTH_LEAST_NS;
    return 0;
}

static int follow_devices(struct tmk_monitoring *m, const struct tmk_args *args)
{
    struct tmk_oom_watch w;
    const char *text = tmk_args_get(args, "process");
    struct tmk_follow_wants wants = {.leak_bytes = DEFAULT_LEAK_BYTES};
    wants.process = text ? (pid_t)tmk_watched_parse(text) : 0;
    if (text && wants.process <= 0) {
        tmk_say("--process: '%s' is no process number", text);
        return TMK_EXIT_USAGE;
    }
    int status = tmk_monitoring_time(args, "tell-every", &wants.tell_every_ns);
    if (status == 0)
        status = init_watch(&w, m, args, stderr, &wants.least_ns);
    if (status != 0)
        return status;
    status = tmk_follow_run(m, &w, &wants);
    tmk_monitoring_release(m);
    tmk_oom_watch_fini(&w, false);
    return status;
}

static int report_watch(struct tmk_oom_watch *w, const struct tmk_args *args, uint64_t least_ns)
{
    struct tmk_leaks leaks = {0};
    tmk_oom_watch_finish(w);
    tmk_watched_jobs_read_fragmentation(w->jobs);
    if (tmk_leaks_find(w->m->sampler, DEFAULT_LEAK_BYTES, least_ns, &leaks) < 0)
        tmk_die("out of memory");
    struct tmk_monitor_status report = tmk_monitoring_status(w->m);
    report.warm_up_ns = w->warm_up_ns;
    report.least_ns = least_ns;
    report.alarms = w->alarms;
    report.jobs = tmk_watched_jobs_devices(w->jobs);
    report.leaks = &leaks;
    int status = tmk_monitor_report(&report, args);
    if (!tmk_monitor_report_is_json(args)) {
        tmk_fragmentation_text(&report);
        tmk_leaks_text(&leaks, w->m->elapsed_ns);
    }
    if (status == 0 && (leaks.n_leaks || tmk_oom_watch_found(w)))
        status = TMK_EXIT_FINDING;
    tmk_leaks_fini(&leaks);
    return status;
}

static int report_all(struct tmk_monitoring *m, const struct tmk_args *args)
{
    struct tmk_oom_watch w;
    uint64_t least_ns;
    bool json = tmk_monitor_report_is_json(args);
    int status = init_watch(&w, m, args, json ? stderr : stdout, &least_ns);
    if (status != 0)
        return status;
    status = tmk_monitoring_run(m, tmk_oom_watch_look, &w);
    if (status == 0)
        status = report_watch(&w, args, least_ns);
    tmk_oom_watch_fini(&w, false);
    return status;
}

static int run_monitor(const struct tmk_args *args)
{
    struct tmk_monitoring m = {0};
    bool follows = tmk_args_get(args, "follow") != NULL;
    bool all = follows || tmk_args_get(args, "all") != NULL;
    int status = tmk_monitor_report_check(args);
    if (status == 0)
        status =
            tmk_monitoring_open(&m, args, &(struct tmk_monitoring_needs){.wants_processes = all});
    if (status == 0)
        status = follows ? follow_devices(&m, args)
                 : all   ? report_all(&m, args)
                         : report_profile(&m, args);
    tmk_monitoring_close(&m);
    return status;
}

static const struct tmk_option options[] = {
    {"all", 0, NULL, NULL, "also oom, leak and fragmentation; without it: profile"},
    {"follow", 0, NULL, NULL, "all of it for a program that reads along: lines of JSON"},
    {"process", 0, "PID", NULL, "with --follow: also the host memory of this process"},
    {"tell-every", 0, "S", NULL, "with --follow: seconds between lines of samples (each)"},
    {"threshold", 0, "PCT", NULL, "with --all: how full is too full, in percent (85)"},
    {"warm-up", 0, "S", NULL, "seconds watched before growth counts (60; leaks 30)"},
    TMK_MONITORING_OPTIONS("0"),
    TMK_MONITOR_REPORT_OPTIONS,
};

static const char *const description[] = {
    "With --all it warns when a device is 85 % full, as `tidemark oom` does. At the end it "
    "reports what the devices used, as `profile`, what grew by 100 MB, as `leak`, and how "
    "fragmented the memory of recorded processes is on each GPU, as `frag`.",
    TMK_MONITORING_NOTES,
    "--follow writes one line for each round of samples and for each warning, and a report for "
    "each line on stdin and at the end. It ends when stdin ends.",
    NULL,
};

static const char *const json_keys[] = {
    "devices, summary\tas in `tidemark profile --json`; with --all each device has oom (a "
    "prediction as in `oom`) in place of forecast, and fragmentation",
    "fragmentation\treserved allocated free largest_free largest_allocatable releasable stuck "
    "(free between blocks) percent (stuck, of reserved) segments blocks free_blocks, summed "
    "over processes, and a list with the same for each pid, rank and device; null: "
    "fragmentation_reason says why",
    "verdict\talso verdict_reason leaks watched, as in `tidemark leak --json`",
    "Lines of --follow:",
    "samples\ta list, one entry a device",
    "warning\ta prediction as in `oom`; actions, actions_zh: what to do, in English and in "
    "Chinese",
    "process\tin a report, with --process: pid rss_before rss rss_max growth_bytes "
    "bytes_per_second window_s verdict",
    NULL,
};

static const char *const exit_status[] = {
    "0\tsuccess",
    "1\twith --all: a warning or a leak",
    "2\twrong usage",
    NULL,
};

static const char *const examples[] = {
    "tidemark monitor --all",
    "watch everything until ^C, then report",
    "tidemark monitor --all --duration 300 --output status.json",
    "five minutes, with the report in a file",
    "tidemark monitor --follow | jq -c .samples",
    "a stream of samples for a program",
    NULL,
};

const struct tmk_command tmk_cmd_monitor = {
    .name = "monitor",
    .group = TMK_GROUP_LIVE,
    .summary = "Watch devices with all monitors at once",
    .usage = "[--all|--follow] [options]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .operand = TMK_OPERAND_NONE,
    .json = json_keys,
    .exit_status = exit_status,
    .examples = examples,
    .run = run_monitor,
};
