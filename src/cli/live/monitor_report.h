/* SPDX-License-Identifier: MIT */
/* cli/live/monitor_report.h - the end of profile and monitor: a table, --json, --output and --plot.
 */
#ifndef TMK_CLI_LIVE_MONITOR_REPORT_H
#define TMK_CLI_LIVE_MONITOR_REPORT_H

#include "cli/front/command.h"
#include "monitor/device_leaks.h"
#include "monitor/status.h"

/* Rows for a command's table of options. */
#define TMK_MONITOR_REPORT_OPTIONS                                                                 \
    {"output", 'o', "FILE", NULL, "write the report to FILE as JSON (-: stdout)"},                 \
        {"plot", 0, "FILE", NULL, "draw memory over time: .png, .svg or .pdf"},                    \
    {                                                                                              \
        "json", 0, NULL, NULL, "print the report as JSON instead of the table"                     \
    }

/* Check that the files which the options name can be written, before hours are spent. 0, or an exit
 * status after a message. */
int tmk_monitor_report_check(const struct tmk_args *args);
/* Returns whether stdout is for JSON only. */
bool tmk_monitor_report_is_json(const struct tmk_args *args);
/* Write the files that were asked for, then the table or JSON on stdout, then say which devices do
 * not answer. Returns 0, or an exit status after a message; also when no device ever answered. */
int tmk_monitor_report(const struct tmk_monitor_status *status, const struct tmk_args *args);
/* Draw the picture of --plot: what each device used over time. 0, or an exit status after a
 * message. */
int tmk_monitor_plot(const struct tmk_monitor_status *status, const char *path);

/* Print how fragmented the memory of each device is, or why that is not known. */
void tmk_fragmentation_text(const struct tmk_monitor_status *status);

/* Print what grows on the devices: a sentence with the verdict, and a table. */
void tmk_leaks_text(const struct tmk_leaks *leaks, uint64_t elapsed_ns);

#endif
