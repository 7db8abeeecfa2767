/* SPDX-License-Identifier: MIT */
/* cli/live/monitor_plot.h - the picture of --plot: what each device used over time. */
#ifndef TMK_CLI_LIVE_MONITOR_PLOT_H
#define TMK_CLI_LIVE_MONITOR_PLOT_H

#include "monitor/status.h"

/* 0, or an exit status after a message. */
int tmk_monitor_plot(const struct tmk_monitor_status *status, const char *path);

#endif
