/* SPDX-License-Identifier: MIT */
/* cli/run/watch.c - see watch.h. Signals are handled by relay.h. */
#include "cli/run/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/filters.h"
#include "cli/front/usage.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/run/filters_tried.h"
#include "cli/run/raw_signals.h"
#include "cli/run/relay.h"

/* The actions of signals when we were started; the program gets them back. */
static struct sigaction inherited_xfsz, inherited_chld;

void tmk_watch_prepare(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(SIGXFSZ, &ignore, &inherited_xfsz);
    sigaction(SIGCHLD, &standard, &inherited_chld); /* ignored, children could not be waited for */
    tmk_relay_prepare();
}

/* ---- timers ---- */

/* Timers (alarm(), setitimer()) that our parent set outlive an exec but not a fork. They were meant
 * for the program, so it gets what is left of them. */
enum { N_TIMERS = 3 };
static const __itimer_which_t timer_kinds[N_TIMERS] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};

static void take_timers(struct itimerval ret[N_TIMERS])
{
    const struct itimerval none = {0};
    for (unsigned i = 0; i < N_TIMERS; i++)
        if (setitimer(timer_kinds[i], &none, &ret[i]) < 0)
            ret[i] = none;
}

static void give_timers(const struct itimerval timers[N_TIMERS])
{
    for (unsigned i = 0; i < N_TIMERS; i++)
        if (timerisset(&timers[i].it_value))
            setitimer(timer_kinds[i], &timers[i], NULL);
}

/* ---- the program's side ---- */

/* Returns whether a library is a recorder. Inside another `tidemark run` only the inner recorder is
 * loaded, or both would record each event. */
static bool is_recorder(const char *path, size_t n)
{
    static const char name[] = "libtidemark.so";
    const char *slash = memrchr(path, '/', n);
    const char *base = slash ? slash + 1 : path;
    return n - (size_t)(base - path) >= sizeof name - 1 &&
           strncmp(base, name, sizeof name - 1) == 0;
}

static void prepend_preload(const char *library)
{
    const char *at = getenv("LD_PRELOAD");
    char *all = tmk_xstrdup(library);
    for (size_t n; at && *at; at += n) {
        at += strspn(at, ": ");
        n = strcspn(at, ": ");
        if (n == 0 || is_recorder(at, n))
            continue;
        char *more = tmk_xformat("%s:%.*s", all, (int)n, at);
        free(all);
        all = more;
    }
    setenv("LD_PRELOAD", all, 1);
    free(all);
}

void tmk_watch_settings(const struct tmk_watch *w, struct tmk_setting ret[TMK_N_SETTINGS])
{
    const struct tmk_setting settings[TMK_N_SETTINGS] = {
        {"TIDEMARK_RUN", tmk_xstrdup(w->folder)},
        {"TIDEMARK_MAX_SIZE",
         w->max_size_bytes ? tmk_xformat("%" PRIu64, w->max_size_bytes) : NULL},
        {"TIDEMARK_RANKS", w->ranks ? tmk_xstrdup(w->ranks) : NULL},
        {"TIDEMARK_STEP_AT", w->step_at ? tmk_xstrdup(w->step_at) : NULL},
        {"TIDEMARK_CPU_TENSORS", w->cpu_tensors ? tmk_xstrdup("1") : NULL},
        {"TIDEMARK_NATIVE", w->native ? tmk_xstrdup("1") : NULL},
        {"TIDEMARK_NO_STACKS", w->no_stacks ? tmk_xstrdup("1") : NULL},
        {"TIDEMARK_NO_MODULES", w->no_modules ? tmk_xstrdup("1") : NULL},
        {"TIDEMARK_NO_CATEGORIES", w->no_categories ? tmk_xstrdup("1") : NULL},
        {TMK_FILTERS_VARIABLE, tmk_filters_said()},
        {TMK_REFUSALS_VARIABLE, w->refusals ? tmk_xstrdup(w->refusals) : NULL},
    };
    memcpy(ret, settings, sizeof settings);
}

static void set_watched_environment(const struct tmk_watch *w)
{
    struct tmk_setting settings[TMK_N_SETTINGS];
    prepend_preload(w->library);
    tmk_watch_settings(w, settings);
    for (unsigned i = 0; i < TMK_N_SETTINGS; i++) {
        if (settings[i].value)
            setenv(settings[i].name, settings[i].value, 1);
        else
            unsetenv(settings[i].name);
        free(settings[i].value);
    }
}

static void restore_signals(void)
{
    sigaction(SIGXFSZ, &inherited_xfsz, NULL);
    sigaction(SIGCHLD, &inherited_chld, NULL);
    tmk_relay_restore();
}

_Noreturn void tmk_watch_become(const struct tmk_watch *w, int failure)
{
    set_watched_environment(w);
    restore_signals();
    execvp(w->argv[0], w->argv);
    int reason = errno;
    (void)!write(failure, &reason, sizeof reason);
    _exit(127);
}

/* ---- our side ---- */

struct tmk_outcome tmk_watch_outcome(int wait_status)
{
    struct tmk_outcome o = {.started = true};
    if (WIFSIGNALED(wait_status)) {
        o.signal = WTERMSIG(wait_status);
        o.status = 128 + o.signal;
    } else {
        o.status = WEXITSTATUS(wait_status);
    }
    return o;
}

struct tmk_outcome tmk_watch_not_started(const char *program, int reason)
{
    bool missing = reason == ENOENT;
    if (missing && !strchr(program, '/'))
        tmk_say("%s: there is no such program on the PATH", program);
    else
        tmk_say("cannot run %s: %s", program, strerror(reason));
    char *script = tmk_usage_script(program);
    if (script)
        tmk_say("to record a Python script: tidemark run -- %s", script);
    free(script);
    return (struct tmk_outcome){.status = missing ? 127 : 126};
}

int tmk_watch_leave(const struct tmk_watch *w)
{
    fflush(NULL);
    restore_signals();
    execvp(w->argv[0], w->argv);
    return tmk_watch_not_started(w->argv[0], errno).status;
}

int tmk_watch_failure(int failure)
{
    int reason = 0;
    ssize_t got;
    do
        got = read(failure, &reason, sizeof reason);
    while (got < 0 && errno == EINTR);
    close(failure);
    return got == sizeof reason ? reason : 0;
}

/* The two sides of the fork: `failure` tells us why the program could not be started, the end of
 * `go` tells the child that signals which came before it are there. */
struct start {
    int failure[2], go[2];
    struct itimerval timers[N_TIMERS];
};

_Noreturn static void start_program(const struct tmk_watch *w, const struct start *s)
{
    char nothing;
    close(s->go[1]);
    while (read(s->go[0], &nothing, 1) < 0 && errno == EINTR)
        ;
    give_timers(s->timers);
    tmk_watch_become(w, s->failure[1]);
}

struct tmk_outcome tmk_watch_run(const struct tmk_watch *w)
{
    struct start s;
    struct tmk_relay relay;
    if (pipe2(s.failure, O_CLOEXEC) < 0 || pipe2(s.go, O_CLOEXEC) < 0)
        tmk_die("cannot make a pipe: %s", strerror(errno));
    fflush(NULL);
    bool was_free = tmk_relay_hold();
    take_timers(s.timers);
    pid_t child = fork();
    if (child < 0)
        tmk_die("cannot start a process: %s", strerror(errno));
    if (child == 0)
        start_program(w, &s);
    close(s.failure[1]);
    close(s.go[0]);
    tmk_relay_start(&relay, child);
    close(s.go[1]);
    int reason = tmk_watch_failure(s.failure[0]);
    int wait_status = tmk_relay_wait(&relay);
    if (was_free)
        tmk_relay_let_go();
    if (reason)
        return tmk_watch_not_started(w->argv[0], reason);
    struct tmk_outcome o = tmk_watch_outcome(wait_status);
    o.was_key = (o.signal == SIGINT || o.signal == SIGQUIT) &&
                (relay.reached & tmk_raw_signal_bit(o.signal));
    return o;
}
