/* SPDX-License-Identifier: MIT */
/* cli/live/follow.c - see follow.h. */
#include "cli/live/follow.h"

#include <poll.h>
#include <stddef.h>
#include <unistd.h>

#include "cli/live/monitoring.h"
#include "cli/live/watched_jobs.h"
#include "cli/output/say.h"
#include "device/device.h"
#include "forecast/device_forecast.h"
#include "forecast/oom_forecast.h"
#include "kit/tree.h"
#include "monitor/device_leaks.h"
#include "monitor/resident.h"
#include "monitor/sampler.h"
#include "monitor/status.h"

struct follow {
    struct tmk_monitoring *m;
    struct tmk_oom_watch *watch;
    const struct tmk_follow_wants *wants;
    uint64_t tell_ns;            /* since the first sample: when samples are written again */
    struct tmk_resident process; /* pid 0: none */
};

static void write_follow_report(const struct follow *f)
{
    struct tmk_leaks leaks = {0};
    struct tmk_tree t;
    tmk_watched_jobs_read_fragmentation(f->watch->jobs);
    if (tmk_leaks_find(f->m->sampler, f->wants->leak_bytes, f->wants->least_ns, &leaks) < 0)
        tmk_die("out of memory");
    struct tmk_monitor_status report = tmk_monitoring_status(f->m);
    report.warm_up_ns = f->watch->warm_up_ns;
    report.least_ns = f->wants->least_ns;
    report.alarms = f->watch->alarms;
    report.jobs = tmk_watched_jobs_devices(f->watch->jobs);
    report.leaks = &leaks;
    report.process = f->process.pid ? &f->process : NULL;
    tmk_tree_init_json(&t, stdout, 0);
    tmk_monitor_status_write(&t, &report);
    tmk_leaks_fini(&leaks);
}

/* Write advice for people, as `tidemark oom` gives it. The reader chooses the language. */
static void write_actions(struct tmk_tree *t, const char *key, const struct tmk_device_forecast *p,
                          const char *(*advice_of)(const struct tmk_device_forecast *f, unsigned i))
{
    const char *advice;
    tmk_tree_list(t, key);
    for (unsigned i = 0; (advice = advice_of(p, i)) != NULL; i++)
        tmk_tree_text(t, NULL, advice);
    tmk_tree_end(t);
}

static void write_warning(const struct tmk_oom_watch *w, unsigned i)
{
    struct tmk_tree t;
    tmk_tree_init_json(&t, stdout, 0);
    tmk_tree_object(&t, NULL);
    tmk_device_forecast_write(&t, "warning", tmk_sampler_device(w->m->sampler, i), &w->alarms[i],
                              &w->forecasts[i].prediction, tmk_oom_watch_jobs(w, i));
    write_actions(&t, "actions", &w->forecasts[i].prediction, tmk_device_forecast_advice);
    write_actions(&t, "actions_zh", &w->forecasts[i].prediction, tmk_device_forecast_advice_zh);
    tmk_tree_end(&t);
}

/* Write the samples with what decides about a warning: the threshold, and the last forecast. */
static void write_samples(const struct follow *f)
{
    const struct tmk_monitoring *m = f->m;
    struct tmk_tree t;
    tmk_tree_init_json(&t, stdout, 0);
    tmk_tree_object(&t, NULL);
    tmk_tree_list(&t, "samples");
    for (unsigned i = 0; i < tmk_sampler_n_devices(m->sampler); i++) {
        const struct tmk_watched_device *u = tmk_sampler_device(m->sampler, i);
        if (!u->has_now)
            continue;
        tmk_tree_object(&t, NULL);
        tmk_tree_text(&t, "device", u->label);
        tmk_tree_text(&t, "kind", tmk_device_kind_text(u->device->kind));
        tmk_tree_fixed(&t, "time_s", (double)m->elapsed_ns / 1e9, 3);
        tmk_tree_u64(&t, "allocated", u->now.used_bytes);
        tmk_tree_u64(&t, "total", u->now.total_bytes);
        tmk_tree_fixed(&t, "utilization_percent", tmk_device_use_percent(u), 2);
        tmk_tree_bool(&t, "over_threshold",
                      tmk_device_taken_percent(u) >= f->watch->alarms[i].threshold_percent);
        tmk_tree_text(&t, "risk_level",
                      tmk_risk_text(f->watch->forecasts[i].prediction.risk_level));
        tmk_tree_end(&t);
    }
    tmk_tree_end(&t);
    tmk_tree_end(&t);
}

/* Count the lines that stdin has now. *ret_ended: there will be no more. */
static unsigned n_asked(bool *ret_ended)
{
    char text[256];
    unsigned n = 0;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    *ret_ended = false;
    while (!*ret_ended && poll(&input, 1, 0) > 0) {
        ssize_t got = read(STDIN_FILENO, text, sizeof text);
        *ret_ended = got <= 0;
        for (ssize_t i = 0; i < got; i++)
            n += text[i] == '\n';
    }
    return n;
}

/* Answer each line on stdin with a report as of the last sample. The loop calls it while it waits
 * for the next one. */
static bool answer_stdin(void *arg)
{
    struct follow *f = arg;
    bool ended;
    for (unsigned n = n_asked(&ended); n > 0; n--)
        write_follow_report(f);
    fflush(stdout);
    return ended;
}

static void look_and_tell(void *arg)
{
    struct follow *f = arg;
    if (f->process.pid && tmk_resident_look(&f->process, &f->m->roots, f->m->elapsed_ns) < 0)
        tmk_die("out of memory");
    if (f->m->elapsed_ns >= f->tell_ns) {
        f->tell_ns = f->m->elapsed_ns + f->wants->tell_every_ns;
        write_samples(f);
    }
    tmk_oom_watch_look(f->watch);
    if (answer_stdin(f))
        kill(getpid(), SIGTERM); /* held back, and taken as the end before the next look */
}

int tmk_follow_run(struct tmk_monitoring *m, struct tmk_oom_watch *w,
                   const struct tmk_follow_wants *wants)
{
    struct follow f = {.m = m, .watch = w, .wants = wants};
    tmk_resident_init(&f.process, wants->process);
    w->rang = write_warning;
    m->is_silent = true;
    m->asked = answer_stdin;
    int status = tmk_monitoring_run(m, look_and_tell, &f);
    if (status == 0) {
        tmk_oom_watch_finish(w);
        write_follow_report(&f);
    }
    tmk_resident_fini(&f.process);
    return status;
}
