/* SPDX-License-Identifier: MIT */
/* cli/live/monitoring.c - see monitoring.h.
 *
 * The signals are blocked and waited for until the next sample is due: so none is lost between a
 * test and a sleep, and there are no handlers. Who is asked on stdin waits for both, on a signalfd.
 * They stay blocked until the report is out: a second ^C, out of impatience, must not keep it from
 * being written. One that was ignored when we were started (nohup) stays ignored. */
#include "cli/live/monitoring.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "cli/output/say.h"
#include "device/device.h"
#include "forecast/device_forecast.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/utf8.h"
#include "monitor/growth.h"
#include "monitor/selection.h"

enum { PROGRESS_BYTES = 56 }; /* the line is to fit a screen */

#define NS_PER_S 1000000000u
#define TELL_NS (NS_PER_S / 4)
#define LEAST_INTERVAL_NS 1000000u
#define MOST_DURATION_NS (366 * 86400 * (uint64_t)NS_PER_S)

/* ---- options ---- */

int tmk_monitoring_time(const struct tmk_args *args, const char *option, uint64_t *ret_ns)
{
    const char *text = tmk_args_get(args, option);
    if (!text || tmk_seconds_parse(text, ret_ns) == 0)
        return 0;
    tmk_say("--%s: '%s' is not a time, such as 60, 0.1, 250ms or 5min", option, text);
    return TMK_EXIT_USAGE;
}

int tmk_monitoring_number(const struct tmk_args *args, const char *option, double otherwise,
                          double most, double *ret)
{
    const char *text = tmk_args_get(args, option);
    char *end;
    if (!text) {
        *ret = otherwise;
        return 0;
    }
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || value <= 0 || value > most) {
        tmk_say("--%s: '%s' is not a number over 0 and up to %g", option, text, most);
        return TMK_EXIT_USAGE;
    }
    *ret = value;
    return 0;
}

static int read_settings(const struct tmk_args *args, const struct tmk_monitoring_needs *needs,
                         struct tmk_sampler_settings *ret)
{
    ret->interval_ns = NS_PER_S / 10;
    ret->duration_ns = (uint64_t)(needs->duration_s * NS_PER_S);
    int status = tmk_monitoring_time(args, "interval", &ret->interval_ns);
    if (status == 0)
        status = tmk_monitoring_time(args, "duration", &ret->duration_ns);
    if (status == 0 &&
        (ret->interval_ns < LEAST_INTERVAL_NS || ret->interval_ns > MOST_DURATION_NS)) {
        tmk_say("--interval: %s is out of range: from 0.001 s to a year",
                tmk_args_get(args, "interval"));
        status = TMK_EXIT_USAGE;
    }
    if (status == 0 && ret->duration_ns > MOST_DURATION_NS) {
        tmk_say("--duration: more than a year; 0 goes on until a signal");
        status = TMK_EXIT_USAGE;
    }
    return status;
}

/* Returns how often processes are listed. A list costs more than a look at the memory, and 64 of
 * them show a trend. */
static uint64_t process_interval(const struct tmk_sampler_settings *s)
{
    uint64_t ns = s->duration_ns ? s->duration_ns / TMK_HISTORY_PROCESS : NS_PER_S;
    ns = ns > NS_PER_S ? NS_PER_S : ns;
    return ns < s->interval_ns ? s->interval_ns : ns;
}

/* ---- what a driver says ---- */

enum { REASON_BYTES = 1024 };

/* Writes `text` as it may stand on a screen into the caller's buffer of REASON_BYTES; returns it.
 */
static const char *make_text_harmless(const char *text, char *buffer)
{
    memset(buffer, 0, REASON_BYTES);
    FILE *out = fmemopen(buffer, REASON_BYTES - 1, "w");
    if (!out)
        return "-";
    tmk_utf8_write(out, text, REASON_BYTES / 4 - 1);
    fclose(out);
    return buffer;
}

void tmk_monitoring_say(const struct tmk_watched_device *u, const char *what, const char *reason)
{
    char buffer[REASON_BYTES];
    tmk_say("device %s %s: %s", u->label, tmk_translated_for_people(what),
            make_text_harmless(reason, buffer));
}

/* ---- open, close ---- */

/* Say which driver cannot be asked: its GPU is there, and the host stands in for it. */
static void say_broken_driver(const struct tmk_devices *d)
{
    const struct tmk_driver *driver = tmk_devices_driver(d, TMK_DEVICE_NVIDIA);
    char buffer[REASON_BYTES];
    if (driver->state != TMK_DRIVER_READY && driver->state != TMK_DRIVER_ABSENT)
        tmk_say("NVIDIA's GPUs cannot be queried: %s; see: tidemark doctor",
                make_text_harmless(driver->reason, buffer));
}

static int open_devices(struct tmk_monitoring *m, const struct tmk_args *args,
                        struct tmk_selection *ret)
{
    const char *values[TMK_MAX_VALUES];
    struct tmk_error err = {0};
    unsigned n = tmk_args_list(args, "devices", values);
    m->roots = tmk_device_roots_get();
    if (tmk_devices_open(&m->roots, &m->devices, &err) < 0) {
        tmk_say("%s", err.text);
        return TMK_EXIT_FINDING;
    }
    say_broken_driver(m->devices);
    int rc = tmk_selection_parse_present(m->devices, values, n, ret, &err);
    if (err.text[0])
        tmk_say("--devices: %s%s", err.text, rc == 0 ? _("; going on without it") : "");
    if (rc < 0)
        return TMK_EXIT_USAGE;
    return 0;
}

int tmk_monitoring_open(struct tmk_monitoring *m, const struct tmk_args *args,
                        const struct tmk_monitoring_needs *needs)
{
    struct tmk_sampler_settings settings = {0};
    struct tmk_selection selection;
    struct tmk_error err = {0};
    *m = (struct tmk_monitoring){.name = args->command->name};
    int status = read_settings(args, needs, &settings);
    if (status == 0)
        status = open_devices(m, args, &selection);
    if (status != 0)
        return status;
    settings.roots = &m->roots;
    if (needs->once)
        settings.duration_ns = 1;
    if (needs->wants_processes)
        settings.process_interval_ns = process_interval(&settings);
    if (tmk_sampler_open(m->devices, &selection, &settings, &m->sampler, &err) < 0) {
        tmk_say("%s", err.text);
        return TMK_EXIT_FINDING;
    }
    m->started = time(NULL);
    return 0;
}

void tmk_monitoring_close(struct tmk_monitoring *m)
{
    tmk_monitoring_release(m);
    m->sampler = tmk_sampler_close(m->sampler);
    m->devices = tmk_devices_close(m->devices);
}

/* ---- the loop ---- */

/* Signals that end the loop. SIGPIPE: nobody reads our warnings any more, but a report may be due.
 */
static const int stopping[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

static void hold_signals(struct tmk_monitoring *m)
{
    sigemptyset(&m->held);
    for (size_t i = 0; i < TMK_N(stopping); i++) {
        struct sigaction now;
        sigaction(stopping[i], NULL, &now);
        if (now.sa_handler != SIG_IGN)
            sigaddset(&m->held, stopping[i]);
    }
    sigprocmask(SIG_BLOCK, &m->held, &m->before);
    m->is_holding = true;
}

/* A second ^C meant what the first did: it is taken as answered. A closed stdout ends us now, as it
 * does all programs. */
void tmk_monitoring_release(struct tmk_monitoring *m)
{
    const struct timespec now = {0};
    if (!m->is_holding)
        return;
    fflush(stdout);
    sigdelset(&m->held, SIGPIPE);
    while (sigtimedwait(&m->held, NULL, &now) > 0)
        ;
    sigprocmask(SIG_SETMASK, &m->before, NULL);
    m->is_holding = false;
}

static struct timespec time_until(uint64_t due_ns)
{
    uint64_t now = tmk_clock_monotonic_ns();
    uint64_t rest = due_ns > now ? due_ns - now : 0;
    return (struct timespec){.tv_sec = (time_t)(rest / NS_PER_S),
                             .tv_nsec = (long)(rest % NS_PER_S)};
}

/* Wait until a time. Returns true when a signal came before. */
static bool is_stopped_before(uint64_t due_ns, const sigset_t *set)
{
    for (;;) {
        struct timespec wait = time_until(due_ns);
        if (sigtimedwait(set, NULL, &wait) > 0)
            return true;
        if (errno == EAGAIN && tmk_clock_monotonic_ns() >= due_ns)
            return false;
    }
}

/* Wait likewise, and answer what is asked on stdin meanwhile. */
static bool is_stopped_or_asked(const struct tmk_monitoring *m, uint64_t due_ns, void *arg)
{
    const struct timespec none = {0};
    struct pollfd inputs[] = {{.fd = m->signal_fd, .events = POLLIN},
                              {.fd = STDIN_FILENO, .events = POLLIN}};
    for (;;) {
        struct timespec wait = time_until(due_ns);
        int n = ppoll(inputs, TMK_N(inputs), &wait, NULL);
        if (sigtimedwait(&m->held, NULL, &none) > 0)
            return true;
        if (n > 0 && inputs[1].revents && m->asked(arg))
            return true;
        if (tmk_clock_monotonic_ns() >= due_ns)
            return false;
    }
}

/* Wait for the next look. Before the first one nothing can be answered. */
static bool is_over_before(const struct tmk_monitoring *m, uint64_t due_ns, void *arg)
{
    if (m->signal_fd < 0 || !m->elapsed_ns)
        return is_stopped_before(due_ns, &m->held);
    return is_stopped_or_asked(m, due_ns, arg);
}

void tmk_monitoring_clear(struct tmk_monitoring *m)
{
    tmk_progress_fini(&m->progress);
}

/* Write " 0 43.2 %" for a device into `text`. Returns its length. */
static size_t describe_devices(const struct tmk_watched_device *u, char *text, size_t size)
{
    if (!u->has_now)
        return (size_t)snprintf(text, size, " %s -", u->label);
    return (size_t)snprintf(text, size, " %s %.1f %%", u->label, tmk_device_use_percent(u));
}

/* Write "profile, device 0 43.2 %, 1 12.0 %", with as many devices as there is room for. */
static void describe_all(const struct tmk_monitoring *m, char *text, size_t size)
{
    char one[TMK_LABEL_BYTES + 16];
    size_t used = (size_t)snprintf(text, size, "%s, device", m->name);
    for (unsigned i = 0; i < tmk_sampler_n_devices(m->sampler); i++) {
        size_t n = describe_devices(tmk_sampler_device(m->sampler, i), one, sizeof one);
        if (used + n + sizeof ", ..." > size) {
            strcpy(text + used, ", ...");
            return;
        }
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? "," : "", one);
    }
}

static void tell_caller(struct tmk_monitoring *m, char *text, size_t size)
{
    const struct tmk_sampler_settings *s = tmk_sampler_settings(m->sampler);
    if (m->is_silent || m->elapsed_ns < m->next_tell_ns)
        return;
    m->next_tell_ns = m->elapsed_ns + TELL_NS;
    describe_all(m, text, size);
    double part = s->duration_ns ? (double)m->elapsed_ns / (double)s->duration_ns : 0;
    tmk_progress_tell(&m->progress, (uint32_t)(part * 1000), s->duration_ns ? 1000 : 0);
}

static int loop_until_end(struct tmk_monitoring *m, void (*each)(void *arg), void *arg)
{
    char text[PROGRESS_BYTES];
    uint64_t due_ns, start_ns = tmk_sampler_start_ns(m->sampler);
    uint64_t duration_ns = tmk_sampler_settings(m->sampler)->duration_ns;
    struct tmk_error err = {0};
    snprintf(text, sizeof text, "%s", m->name);
    tmk_progress_init(&m->progress, stderr, text);
    while (tmk_sampler_due_ns(m->sampler, &due_ns)) {
        if (is_over_before(m, due_ns, arg))
            return 0;
        if (tmk_sampler_look(m->sampler, &err) < 0) {
            tmk_say("%s", err.text);
            return TMK_EXIT_FINDING;
        }
        m->elapsed_ns = tmk_clock_monotonic_ns() - start_ns;
        tell_caller(m, text, sizeof text);
        if (each)
            each(arg);
    }
    (void)is_over_before(m, start_ns + duration_ns, arg);
    return 0;
}

int tmk_monitoring_run(struct tmk_monitoring *m, void (*each)(void *arg), void *arg)
{
    hold_signals(m);
    m->signal_fd = m->asked ? signalfd(-1, &m->held, SFD_CLOEXEC) : -1;
    int status = loop_until_end(m, each, arg);
    if (m->signal_fd >= 0)
        close(m->signal_fd);
    m->elapsed_ns = tmk_clock_monotonic_ns() - tmk_sampler_start_ns(m->sampler);
    tmk_progress_fini(&m->progress);
    return status;
}

struct tmk_monitor_status tmk_monitoring_status(const struct tmk_monitoring *m)
{
    return (struct tmk_monitor_status){.sampler = m->sampler,
                                       .started = m->started,
                                       .now = time(NULL),
                                       .elapsed_ns = m->elapsed_ns,
                                       .warm_up_ns = TMK_DEVICE_FORECAST_WARM_UP_NS,
                                       .least_ns = TMK_GROWTH_LEAST_NS};
}
