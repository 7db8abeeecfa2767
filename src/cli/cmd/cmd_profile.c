/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_profile.c - what devices use over time. */
#include "base/array.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/live/monitor_report.h"
#include "cli/live/monitoring.h"
#include "monitor/status.h"

static int run_profile(const struct tmk_args *args)
{
    struct tmk_monitoring m = {0};
    int status = tmk_monitor_report_check(args);
    if (status == 0)
        status = tmk_monitoring_open(&m, args, &(struct tmk_monitoring_needs){.duration_s = 60});
    if (status == 0)
        status = tmk_monitoring_run(&m, NULL, NULL);
    if (status == 0) {
        struct tmk_monitor_status report = tmk_monitoring_status(&m);
        status = tmk_monitor_report(&report, args);
    }
    tmk_monitoring_close(&m);
    return status;
}

static const struct tmk_option options[] = {
    TMK_MONITORING_OPTIONS("60"),
    TMK_MONITOR_REPORT_OPTIONS,
};

static const char *const description[] = {
    TMK_MONITORING_NOTES,
    NULL,
};

static const char *const json_keys[] = {
    "timestamp\tlocal time; started duration_s interval_s missed_samples",
    "devices\tan object by device number, each with:",
    "current_usage\tallocated (what all processes together use, says the driver) free total "
    "utilization_percent reserved",
    "statistics\tavg_utilization max_utilization samples_count min_allocated avg_allocated "
    "max_allocated max_time_s gaps_count",
    "device\tname kind id limited_by error",
    "forecast\tthe forecast part of a prediction of `oom`",
    "and the whole has:",
    "summary\ttotal_devices total_memory_gb (1024^3 bytes) overall_utilization",
    NULL,
};

static const char *const examples[] = {
    "tidemark profile --duration 60 --output profile.json",
    "a minute of all GPUs, as a table and as JSON",
    "tidemark profile --devices 0 1 --duration 0 --plot memory.png",
    "two GPUs until ^C, then a picture",
    "tidemark profile --duration 1 --json | jq .summary",
    "one second, for a script",
    NULL,
};

const struct tmk_command tmk_cmd_profile = {
    .name = "profile",
    .group = TMK_GROUP_LIVE,
    .summary = "Sample the memory of devices and sum it up",
    .usage = "[options]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .operand = TMK_OPERAND_NONE,
    .json = json_keys,
    .examples = examples,
    .run = run_profile,
};
