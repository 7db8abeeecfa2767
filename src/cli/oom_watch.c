/* SPDX-License-Identifier: MIT */
/* cli/oom_watch.c - see oom_watch.h.
 *
 * A warning has the labels of Tiny Torch's memory tools. The command runs beside us, so that
 * sampling goes on; one that still runs when its device passes the threshold again is not started
 * twice. Its output goes to stderr, since stdout is ours. */
#include "cli/oom_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cli/xalloc.h"
#include "kit/amount.h"
#include "kit/utf8.h"

extern char **environ;

enum { SHOWN_HOLDERS = 3 };

void tmk_oom_watch_init(struct tmk_oom_watch *w, struct tmk_monitoring *m, double threshold_percent,
                        const char *command, FILE *out)
{
    unsigned n = tmk_sampler_n_devices(m->sampler);
    *w = (struct tmk_oom_watch){.m = m, .out = out, .command = command};
    w->alarms = tmk_xcalloc(n, sizeof *w->alarms);
    w->running = tmk_xcalloc(n, sizeof *w->running);
    for (unsigned i = 0; i < n; i++)
        w->alarms[i].threshold_percent = threshold_percent;
}

/* ---- the warning ---- */

static int by_bytes(const void *a, const void *b)
{
    const struct tmk_device_process *p = a, *q = b;
    uint64_t m = p->used_bytes == TMK_BYTES_UNKNOWN ? 0 : p->used_bytes;
    uint64_t n = q->used_bytes == TMK_BYTES_UNKNOWN ? 0 : q->used_bytes;
    return (m < n) - (m > n);
}

/* Who has it, the largest first. Not to know is no reason not to warn. */
static void find_holders(const struct tmk_oom_watch *w, const struct tmk_device_use *u,
                         struct tmk_device_processes *ret)
{
    (void)tmk_devices_processes(w->m->devices, u->index, ret, NULL);
    qsort(ret->items, ret->n, sizeof ret->items[0], by_bytes);
}

static void warn(const struct tmk_oom_watch *w, const struct tmk_device_use *u,
                 const struct tmk_device_processes *holders)
{
    bool is_host = u->device->kind == TMK_DEVICE_HOST;
    fprintf(w->out,
            "[WARNING] OOM warning: %s%s\n"
            "   Risk level: -\n"
            "   Current usage: %.1f%%\n"
            "   Predicted OOM time: -\n"
            "   Confidence: -\n",
            is_host ? "host" : "GPU ", is_host ? "" : u->label, tmk_device_taken_percent(u));
    for (unsigned i = 0; i < holders->n && i < SHOWN_HOLDERS; i++) {
        const struct tmk_device_process *p = &holders->items[i];
        fprintf(w->out, "   Held by: %d ", (int)p->pid);
        tmk_utf8_write(w->out, p->name[0] ? p->name : "-", sizeof p->name);
        fputs(", ", w->out);
        if (p->used_bytes == TMK_BYTES_UNKNOWN)
            fputs("-\n", w->out);
        else
            fprintf(w->out, "%.2f GB\n", (double)p->used_bytes / TMK_GB);
    }
    fflush(w->out);
}

/* ---- the command ---- */

static void set(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void set(const char *name, const char *format, ...)
{
    char text[160];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    setenv(name, text, 1);
}

static void set_environment(const struct tmk_device_use *u, const struct tmk_alarm *alarm,
                            const struct tmk_device_processes *holders)
{
    set("TIDEMARK_OOM_DEVICE", "%s", u->label);
    set("TIDEMARK_OOM_NAME", "%s", u->device->name);
    set("TIDEMARK_OOM_USED_BYTES", "%" PRIu64, u->now.used_bytes);
    set("TIDEMARK_OOM_TOTAL_BYTES", "%" PRIu64, u->now.total_bytes);
    set("TIDEMARK_OOM_PERCENT", "%.1f", tmk_device_taken_percent(u));
    set("TIDEMARK_OOM_THRESHOLD", "%.1f", alarm->threshold_percent);
    if (holders->n)
        set("TIDEMARK_OOM_PID", "%d", (int)holders->items[0].pid);
    else
        unsetenv("TIDEMARK_OOM_PID");
}

/* With signals as a program expects them: we hold some back, and ignore SIGXFSZ. In a group of its
 * own: ^C is for us, and it is to end its work. What is typed is not for it either. */
static int spawn(const char *command, pid_t *ret)
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

static void act(struct tmk_oom_watch *w, unsigned i, const struct tmk_device_processes *holders)
{
    const struct tmk_device_use *u = tmk_sampler_device(w->m->sampler, i);
    if (w->running[i]) {
        tmk_say("--exec: the command for device %s still runs (process %d), not started again",
                u->label, (int)w->running[i]);
        return;
    }
    set_environment(u, &w->alarms[i], holders);
    int reason = spawn(w->command, &w->running[i]);
    if (reason != 0) {
        w->running[i] = 0;
        tmk_say("--exec: cannot run '%s': %s", w->command, strerror(reason));
    }
}

/* What became of the command of device i. */
static void reap(struct tmk_oom_watch *w, unsigned i, int flags)
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

static void ring(struct tmk_oom_watch *w, unsigned i)
{
    const struct tmk_device_use *u = tmk_sampler_device(w->m->sampler, i);
    struct tmk_device_processes *holders = tmk_xcalloc(1, sizeof *holders);
    find_holders(w, u, holders);
    tmk_monitoring_clear(w->m);
    warn(w, u, holders);
    if (w->command)
        act(w, i, holders);
    free(holders);
}

void tmk_oom_watch_look(void *arg)
{
    struct tmk_oom_watch *w = arg;
    for (unsigned i = 0; i < tmk_sampler_n_devices(w->m->sampler); i++) {
        const struct tmk_device_use *u = tmk_sampler_device(w->m->sampler, i);
        reap(w, i, WNOHANG);
        if (u->has_now && tmk_alarm_look(&w->alarms[i], tmk_device_taken_percent(u)))
            ring(w, i);
    }
}

bool tmk_oom_watch_found(const struct tmk_oom_watch *w)
{
    for (unsigned i = 0; i < tmk_sampler_n_devices(w->m->sampler); i++)
        if (w->alarms[i].n_passed)
            return true;
    return false;
}

void tmk_oom_watch_fini(struct tmk_oom_watch *w, bool wait)
{
    for (unsigned i = 0; w->running && i < tmk_sampler_n_devices(w->m->sampler); i++) {
        reap(w, i, wait ? 0 : WNOHANG);
        if (w->running[i])
            tmk_say("--exec: the command still runs (process %d)", (int)w->running[i]);
    }
    free(w->alarms);
    free(w->running);
    *w = (struct tmk_oom_watch){0};
}
