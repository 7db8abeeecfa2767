/* SPDX-License-Identifier: MIT */
/* cli/live/oom_watch.h - warns when a device passes the threshold or is forecast to run out, and
 * runs a command then. */
#ifndef TMK_CLI_LIVE_OOM_WATCH_H
#define TMK_CLI_LIVE_OOM_WATCH_H

#include "cli/live/monitoring.h"
#include "cli/live/watched_jobs.h"
#include "forecast/device_forecast.h"
#include "forecast/oom_forecast.h"
#include "monitor/alarm.h"
#include "monitor/watched_forecast.h"

struct tmk_oom_watch_device { /* its forecast is remade now and then, not at each sample */
    struct tmk_device_forecast prediction;
    struct tmk_forecast_pace pace;
    bool was_over;             /* the threshold, when it was made */
    enum tmk_risk warned_risk; /* the highest that was warned of since it was lower than high */
    struct tmk_alarm full;     /* rings when the device is full */
    uint64_t n_ooms;           /* that were warned of */
    uint64_t n_warned;         /* but for passing the threshold */
};

struct tmk_oom_watch {
    struct tmk_monitoring *m;
    FILE *out;                                                    /* for warnings */
    void (*rang)(const struct tmk_oom_watch *w, unsigned device); /* instead; NULL: a text */
    const char *command;                                          /* NULL: none */
    struct tmk_alarm *alarms;                                     /* by device */
    struct tmk_oom_watch_device *forecasts;                       /* by device */
    struct tmk_watched_jobs *jobs; /* NULL: OOMs of watched processes are not looked for */
    uint64_t warm_up_ns;           /* nothing that was watched for less is forecast to run out */
    pid_t *running;                /* the command of each device; 0: none runs */
};

/* `m` and `command` are borrowed until fini. */
void tmk_oom_watch_init(struct tmk_oom_watch *w, struct tmk_monitoring *m, double threshold_percent,
                        const char *command, FILE *out);
/* Look for OOMs of watched processes too, from now on. */
void tmk_oom_watch_begin_jobs(struct tmk_oom_watch *w);
/* The forecast for a device as of now. */
struct tmk_device_forecast tmk_oom_watch_forecast(const struct tmk_oom_watch *w, unsigned i);
/* What watched processes tell of a device; NULL: they are not looked at. */
const struct tmk_device_jobs *tmk_oom_watch_jobs(const struct tmk_oom_watch *w, unsigned i);
/* Look at what was sampled last; `arg` is the watch, so that this fits tmk_monitoring_run(). */
void tmk_oom_watch_look(void *arg);
/* Look for OOMs once more, after the last sample: one may have ended the job, and the monitor. */
void tmk_oom_watch_finish(struct tmk_oom_watch *w);
/* Returns whether any device was over the threshold at any time. */
bool tmk_oom_watch_is_over(const struct tmk_oom_watch *w);
/* Returns whether there was a warning: a device was over the threshold, was forecast to run out, or
 * a watched process on it ran out of memory. */
bool tmk_oom_watch_found(const struct tmk_oom_watch *w);
/* Wait for commands that still run, or leave them to themselves. */
void tmk_oom_watch_fini(struct tmk_oom_watch *w, bool wait);

#endif
