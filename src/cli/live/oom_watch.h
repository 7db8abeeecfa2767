/* SPDX-License-Identifier: MIT */
/* cli/live/oom_watch.h - warns when a device passes the threshold or is forecast to run out, and
 * runs a command then. */
#ifndef TMK_CLI_LIVE_OOM_WATCH_H
#define TMK_CLI_LIVE_OOM_WATCH_H

#include "cli/live/monitoring.h"
#include "forecast/device_forecast.h"
#include "forecast/oom_forecast.h"

#define TMK_OOM_PERCENT 85.0 /* warn from here on, unless told otherwise */

struct tmk_oom_watch_device { /* its forecast is remade now and then, not at each sample */
    struct tmk_device_forecast prediction;
    uint64_t due_ns;           /* since the first sample: when it is worth making again */
    enum tmk_risk warned_risk; /* the highest that was warned of since it was lower than high */
    uint64_t n_warned;         /* for what was forecast alone */
};

struct tmk_oom_watch {
    struct tmk_monitoring *m;
    FILE *out;                                                    /* for warnings */
    void (*rang)(const struct tmk_oom_watch *w, unsigned device); /* instead; NULL: a text */
    const char *command;                                          /* NULL: none */
    struct tmk_alarm *alarms;                                     /* by device */
    struct tmk_oom_watch_device *forecasts;                       /* by device */
    uint64_t warm_up_ns; /* nothing that was watched for less is forecast to run out */
    pid_t *running;      /* the command of each device; 0: none runs */
};

/* `m` and `command` are borrowed until fini. */
void tmk_oom_watch_init(struct tmk_oom_watch *w, struct tmk_monitoring *m, double threshold_percent,
                        const char *command, FILE *out);
/* Look at what was sampled last; `arg` is the watch, so that this fits tmk_monitoring_run(). */
void tmk_oom_watch_look(void *arg);
/* Returns the cause to give advice on. A device that warns has little left, whatever its outlook.
 */
enum tmk_growth_cause tmk_oom_watch_cause(const struct tmk_device_forecast *p);
/* Returns whether any device was over the threshold at any time. */
bool tmk_oom_watch_is_over(const struct tmk_oom_watch *w);
/* Returns whether there was a warning: a device was over the threshold, or was forecast to run out.
 */
bool tmk_oom_watch_found(const struct tmk_oom_watch *w);
/* Wait for commands that still run, or leave them to themselves. */
void tmk_oom_watch_fini(struct tmk_oom_watch *w, bool wait);

#endif
