/* SPDX-License-Identifier: MIT */
/* cli/live/monitor_report.h - the end of profile and monitor: a table, --json, --output and --plot.
 */
#ifndef TMK_CLI_LIVE_MONITOR_REPORT_H
#define TMK_CLI_LIVE_MONITOR_REPORT_H

#include "cli/front/command.h"
#include "monitor/status.h"

/* For a command's table of options. */
#define TMK_MONITOR_REPORT_OPTIONS                                                                 \
    {"output", 'o', "FILE", NULL, "write the report there, as JSON (-: to stdout)"},               \
        {"plot", 0, "FILE", NULL, "draw memory over time: F.png, F.svg or F.pdf"},                 \
    {                                                                                              \
        "json", 0, NULL, NULL, "the report on stdout instead of the table"                         \
    }

/* Can what the options ask for be written? Before hours are spent. 0, or an exit status after a
 * message. */
int tmk_monitor_report_check(const struct tmk_args *args);
/* Is stdout for JSON only? */
bool tmk_monitor_report_is_json(const struct tmk_args *args);
/* The files that were asked for, then table or JSON on stdout; then which devices do not answer. 0,
 * or an exit status after a message; also when none of them ever answered. */
int tmk_monitor_report(const struct tmk_monitor_status *status, const struct tmk_args *args);

#endif
