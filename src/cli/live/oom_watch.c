/* SPDX-License-Identifier: MIT */
/* cli/live/oom_watch.c - see oom_watch.h.
 *
 * A warning has the labels of Tiny Torch's memory tools. The command runs beside us, so that
 * sampling goes on; one that still runs when its device passes the threshold again is not started
 * twice. Its output goes to stderr, since stdout is ours. */
#include "cli/live/oom_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "device/device.h"
#include "forecast/device_forecast.h"
#include "forecast/oom_forecast.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/utf8.h"
#include "monitor/alarm.h"
#include "monitor/device_jobs.h"
#include "monitor/sampler.h"
#include "monitor/status.h"

extern char **environ;

enum { SHOWN_HOLDERS = 3 };

void tmk_oom_watch_init(struct tmk_oom_watch *w, struct tmk_monitoring *m, double threshold_percent,
                        const char *command, FILE *out)
{
    unsigned n = tmk_sampler_n_devices(m->sampler);
    *w = (struct tmk_oom_watch){
        .m = m, .out = out, .command = command, .warm_up_ns = TMK_DEVICE_FORECAST_WARM_UP_NS};
    w->alarms = tmk_xcalloc(n, sizeof *w->alarms);
    w->forecasts = tmk_xcalloc(n, sizeof *w->forecasts);
    w->running = tmk_xcalloc(n, sizeof *w->running);
    for (unsigned i = 0; i < n; i++) {
        w->alarms[i].threshold_percent = threshold_percent;
        w->forecasts[i].full.threshold_percent = TMK_DEVICE_FORECAST_FULL;
    }
}

void tmk_oom_watch_begin_jobs(struct tmk_oom_watch *w)
{
    w->jobs = tmk_watched_jobs_open(w->m);
}

const struct tmk_device_jobs *tmk_oom_watch_jobs(const struct tmk_oom_watch *w, unsigned i)
{
    return w->jobs ? &tmk_watched_jobs_devices(w->jobs)[i] : NULL;
}

/* ---- the warning ---- */

static int by_used_bytes(const void *a, const void *b)
{
    const struct tmk_device_process *p = a, *q = b;
    uint64_t m = p->used_bytes == TMK_BYTES_UNKNOWN ? 0 : p->used_bytes;
    uint64_t n = q->used_bytes == TMK_BYTES_UNKNOWN ? 0 : q->used_bytes;
    return (m < n) - (m > n);
}

/* Find who uses the device, the largest first. When that is not known, the warning comes without
 * it. */
static void find_holders(const struct tmk_oom_watch *w, const struct tmk_watched_device *u,
                         struct tmk_device_processes *ret)
{
    (void)tmk_devices_processes(w->m->devices, u->index, ret, NULL);
    qsort(ret->items, ret->n, sizeof ret->items[0], by_used_bytes);
}

/* The words of a warning, line by line. */
static const struct words {
    const char *title, *host, *risk, *usage;
    const char *when, *before_seconds, *after_seconds, *between_bounds;
    const char *confidence, *advice, *holder;
    const char *ran_out, *asked_for, *at;
    const char *(*advice_of)(const struct tmk_device_forecast *f, unsigned i);
} english = {.title = "OOM warning",
             .host = "host",
             .risk = "Risk level",
             .usage = "Current usage",
             .when = "Predicted OOM time",
             .before_seconds = "in ",
             .after_seconds = " s",
             .between_bounds = "to",
             .confidence = "Confidence",
             .advice = "Advice",
             .holder = "Held by",
             .ran_out = "Out of memory",
             .asked_for = " asked for ",
             .at = " at ",
             .advice_of = tmk_device_forecast_advice},
  chinese = {.title = "OOM警告",
             .host = "主机",
             .risk = "风险等级",
             .usage = "当前使用率",
             .when = "预测OOM时间",
             .before_seconds = "",
             .after_seconds = "秒后",
             .between_bounds = "-",
             .confidence = "置信度",
             .advice = "建议",
             .holder = "占用进程",
             .ran_out = "内存不足",
             .asked_for = " 申请 ",
             .at = ", ",
             .advice_of = tmk_device_forecast_advice_zh};

/* The labels of both languages are those of a tool that people know, so they are no catalogue's. */
static bool is_language_chinese(void)
{
    return strcmp(tmk_language_name(), "zh") == 0;
}

static void print_holders(FILE *out, const char *label, const struct tmk_device_processes *holders)
{
    for (unsigned i = 0; i < holders->n && i < SHOWN_HOLDERS; i++) {
        const struct tmk_device_process *p = &holders->items[i];
        fprintf(out, "   %s: %d ", label, (int)p->pid);
        tmk_utf8_write(out, p->name[0] ? p->name : "-", sizeof p->name);
        fputs(", ", out);
        if (p->used_bytes == TMK_BYTES_UNKNOWN)
            fputs("-\n", out);
        else
            fprintf(out, "%.2f GB\n", (double)p->used_bytes / TMK_GB);
    }
}

static void print_time(FILE *out, const struct words *say, const struct tmk_device_forecast *p)
{
    if (p->has_time)
        fprintf(out, "   %s: %s%.1f%s (%.1f %s %.1f)\n   %s: %.2f\n", say->when,
                say->before_seconds, p->predicted_oom_time, say->after_seconds, p->predicted_low,
                say->between_bounds, p->predicted_high, say->confidence, p->confidence);
    else
        fprintf(out, "   %s: -\n   %s: -\n", say->when, say->confidence);
}

/* Say which process ran out of memory: "Out of memory: 4243 asked for 2.00 GB at ...". */
static void print_last_oom(FILE *out, const struct words *say, const struct tmk_device_jobs *d)
{
    char iso[TMK_ISO_BYTES];
    fprintf(out, "   %s: %" PRIu32 "%s%.2f GB%s%s\n", say->ran_out, d->oom_pid, say->asked_for,
            (double)d->oom_bytes / TMK_GB, say->at, tmk_iso_text(d->oom_time, iso));
}

static void warn_of_alarm(const struct tmk_oom_watch *w, unsigned i,
                          const struct tmk_device_processes *holders)
{
    const struct words *say = is_language_chinese() ? &chinese : &english;
    const struct tmk_watched_device *u = tmk_sampler_device(w->m->sampler, i);
    const struct tmk_device_forecast *p = &w->forecasts[i].prediction;
    bool is_host = u->device->kind == TMK_DEVICE_HOST;
    const char *risk = tmk_risk_text(p->risk_level), *advice;
    fprintf(w->out, "[WARNING] %s: %s%s\n   %s: %s\n   %s: %.1f%%\n", say->title,
            is_host ? say->host : "GPU ", is_host ? "" : u->label, say->risk, risk ? risk : "-",
            say->usage, tmk_device_taken_percent(u));
    print_time(w->out, say, p);
    if (p->cause == TMK_GROWTH_RAN_OUT)
        print_last_oom(w->out, say, tmk_oom_watch_jobs(w, i));
    for (unsigned k = 0; (advice = say->advice_of(p, k)) != NULL; k++)
        fprintf(w->out, "   %s: %s\n", say->advice, advice);
    print_holders(w->out, say->holder, holders);
    fflush(w->out);
}

/* ---- the command ---- */

static void set_text_variable(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void set_text_variable(const char *name, const char *format, ...)
{
    char text[160];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    setenv(name, text, 1);
}

static void set_hook_environment(const struct tmk_watched_device *u, const struct tmk_alarm *alarm,
                                 const struct tmk_device_forecast *p,
                                 const struct tmk_device_processes *holders)
{
    set_text_variable("TIDEMARK_OOM_DEVICE", "%s", u->label);
    set_text_variable("TIDEMARK_OOM_NAME", "%s", u->device->name);
    set_text_variable("TIDEMARK_OOM_USED_BYTES", "%" PRIu64, u->now.used_bytes);
    set_text_variable("TIDEMARK_OOM_TOTAL_BYTES", "%" PRIu64, u->now.total_bytes);
    set_text_variable("TIDEMARK_OOM_PERCENT", "%.1f", tmk_device_taken_percent(u));
    set_text_variable("TIDEMARK_OOM_THRESHOLD", "%.1f", alarm->threshold_percent);
    set_text_variable("TIDEMARK_OOM_RISK", "%s",
                      tmk_risk_text(p->risk_level) ? tmk_risk_text(p->risk_level) : "");
    if (p->has_time)
        set_text_variable("TIDEMARK_OOM_SECONDS", "%.1f", p->predicted_oom_time);
    else
        unsetenv("TIDEMARK_OOM_SECONDS");
    if (holders->n)
        set_text_variable("TIDEMARK_OOM_PID", "%d", (int)holders->items[0].pid);
    else
        unsetenv("TIDEMARK_OOM_PID");
}

/* Start the command, with signals as a program expects them: we hold some back, and ignore SIGXFSZ.
 * It gets a process group of its own, because ^C is for us and the command should end its work, and
 * no stdin, because what is typed is not for it. */
static int spawn_hook(const char *command, pid_t *ret)
{
    char *argv[] = {"sh", "-c", (char *)command, NULL};
    sigset_t none, standard;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t files;
    sigemptyset(&none);
    sigemptyset(&standard);
    sigaddset(&standard, SIGXFSZ);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &standard);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, 2, 1);
    int reason = posix_spawn(ret, "/bin/sh", &files, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return reason;
}

static void act_on_alarm(struct tmk_oom_watch *w, unsigned i,
                         const struct tmk_device_processes *holders)
{
    const struct tmk_watched_device *u = tmk_sampler_device(w->m->sampler, i);
    if (w->running[i]) {
        tmk_say("--exec: the command for device %s still runs (process %d), not started again",
                u->label, (int)w->running[i]);
        return;
    }
    set_hook_environment(u, &w->alarms[i], &w->forecasts[i].prediction, holders);
    int reason = spawn_hook(w->command, &w->running[i]);
    if (reason != 0) {
        w->running[i] = 0;
        tmk_say("--exec: cannot run '%s': %s", w->command, strerror(reason));
    }
}

/* See what became of the command of device i. */
static void reap_hook(struct tmk_oom_watch *w, unsigned i, int flags)
{
    int status = 0;
    pid_t got;
    if (!w->running[i])
        return;
    do
        got = waitpid(w->running[i], &status, flags);
    while (got < 0 && errno == EINTR);
    if (got == 0)
        return;
    w->running[i] = 0;
    if (got > 0 && WIFEXITED(status) && WEXITSTATUS(status) != 0)
        tmk_say("--exec: '%s' ended with status %d", w->command, WEXITSTATUS(status));
    else if (got > 0 && WIFSIGNALED(status))
        tmk_say("--exec: '%s' was ended by signal %d", w->command, WTERMSIG(status));
}

/* ---- looking ---- */

static void ring_alarm(struct tmk_oom_watch *w, unsigned i)
{
    const struct tmk_watched_device *u = tmk_sampler_device(w->m->sampler, i);
    struct tmk_device_processes *holders = tmk_xcalloc(1, sizeof *holders);
    find_holders(w, u, holders);
    tmk_monitoring_clear(w->m);
    if (w->rang)
        w->rang(w, i);
    else
        warn_of_alarm(w, i, holders);
    if (w->command)
        act_on_alarm(w, i, holders);
    free(holders);
}

struct tmk_device_forecast tmk_oom_watch_forecast(const struct tmk_oom_watch *w, unsigned i)
{
    const struct tmk_device_jobs *jobs = tmk_oom_watch_jobs(w, i);
    struct tmk_device_forecast_terms terms = {
        .warm_up_ns = w->warm_up_ns,
        .threshold_percent = w->alarms[i].threshold_percent,
        .had_oom = jobs && tmk_device_jobs_had_oom(jobs, w->m->elapsed_ns)};
    return tmk_watched_device_forecast(tmk_sampler_device(w->m->sampler, i), &terms);
}

static void look_ahead_of_device(struct tmk_oom_watch *w, unsigned i, double percent)
{
    struct tmk_oom_watch_device *f = &w->forecasts[i];
    f->prediction = tmk_oom_watch_forecast(w, i);
    tmk_forecast_pace_note(&f->pace, w->m->elapsed_ns, percent);
}

/* Returns whether the risk is worth a warning: once when it gets high, once more when it gets
 * critical, and again after it was neither. While the threshold's alarm has rung, that was said. */
static bool is_worse(struct tmk_oom_watch_device *f, const struct tmk_alarm *alarm)
{
    enum tmk_risk before = f->warned_risk, now = f->prediction.risk_level;
    bool is_alarm = tmk_device_forecast_is_alarm(&f->prediction);
    f->warned_risk = alarm->is_over ? TMK_RISK_CRITICAL
                     : !is_alarm    ? TMK_RISK_UNKNOWN
                     : now > before ? now
                                    : before;
    return is_alarm && now > before && !alarm->is_over;
}

/* Returns whether a watched process has run out of memory since the last warning of that. */
static bool is_new_oom(const struct tmk_oom_watch *w, unsigned i)
{
    const struct tmk_device_jobs *jobs = tmk_oom_watch_jobs(w, i);
    struct tmk_oom_watch_device *f = &w->forecasts[i];
    bool is_new = jobs && jobs->n_ooms > f->n_ooms;
    if (is_new)
        f->n_ooms = jobs->n_ooms;
    return is_new;
}

/* A forecast is made now and then, and at once where what is so now has changed. */
static void look_at_alarm(struct tmk_oom_watch *w, unsigned i)
{
    const struct tmk_watched_device *u = tmk_sampler_device(w->m->sampler, i);
    struct tmk_oom_watch_device *f = &w->forecasts[i];
    if (!u->has_now)
        return;
    double percent = tmk_device_taken_percent(u);
    bool is_over = percent >= w->alarms[i].threshold_percent;
    bool passed = tmk_alarm_look(&w->alarms[i], percent);
    bool worse = tmk_alarm_look(&f->full, percent);
    worse = is_new_oom(w, i) || worse;
    if (passed || worse || is_over != f->was_over ||
        tmk_forecast_pace_is_due(&f->pace, w->m->elapsed_ns, percent)) {
        look_ahead_of_device(w, i, percent);
        worse = is_worse(f, &w->alarms[i]) || worse;
    }
    f->was_over = is_over;
    f->n_warned += worse && !passed;
    if (passed || worse)
        ring_alarm(w, i);
}

void tmk_oom_watch_look(void *arg)
{
    struct tmk_oom_watch *w = arg;
    if (w->jobs)
        tmk_watched_jobs_look(w->jobs, false);
    for (unsigned i = 0; i < tmk_sampler_n_devices(w->m->sampler); i++) {
        reap_hook(w, i, WNOHANG);
        look_at_alarm(w, i);
    }
}

void tmk_oom_watch_finish(struct tmk_oom_watch *w)
{
    if (!w->jobs)
        return;
    tmk_watched_jobs_look(w->jobs, true);
    for (unsigned i = 0; i < tmk_sampler_n_devices(w->m->sampler); i++)
        look_at_alarm(w, i);
}

bool tmk_oom_watch_is_over(const struct tmk_oom_watch *w)
{
    for (unsigned i = 0; i < tmk_sampler_n_devices(w->m->sampler); i++)
        if (w->alarms[i].n_passed)
            return true;
    return false;
}

bool tmk_oom_watch_found(const struct tmk_oom_watch *w)
{
    for (unsigned i = 0; i < tmk_sampler_n_devices(w->m->sampler); i++)
        if (w->forecasts[i].n_warned)
            return true;
    return tmk_oom_watch_is_over(w);
}

void tmk_oom_watch_fini(struct tmk_oom_watch *w, bool wait)
{
    for (unsigned i = 0; w->running && i < tmk_sampler_n_devices(w->m->sampler); i++) {
        reap_hook(w, i, wait ? 0 : WNOHANG);
        if (w->running[i])
            tmk_say("--exec: the command still runs (process %d)", (int)w->running[i]);
    }
    tmk_watched_jobs_close(w->jobs);
    free(w->alarms);
    free(w->forecasts);
    free(w->running);
    *w = (struct tmk_oom_watch){0};
}
