/* SPDX-License-Identifier: MIT */
/* cli/watch.c - see watch.h.
 *
 * The program stays in our process group, so that a terminal treats both as one job. What the
 * terminal itself sends (^C, ^\, ^Z) reaches the program without us and is not handed on: it would
 * come twice. What another process sends to us is. All these signals are blocked and taken one by
 * one with sigwaitinfo(), which says where each came from; there are no handlers and no races. */
#include "cli/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/say.h"
#include "cli/xalloc.h"

static const int relayed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

/* As they were when we were started; the program gets them back. */
static struct sigaction inherited_xfsz, inherited_chld;
static sigset_t inherited_mask;

void tmk_watch_prepare(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(SIGXFSZ, &ignore, &inherited_xfsz);
    sigaction(SIGCHLD, &standard, &inherited_chld); /* ignored, children could not be waited for */
    sigprocmask(SIG_SETMASK, NULL, &inherited_mask);
}

/* ---- the program's side ---- */

static void prepend_preload(const char *library)
{
    const char *before = getenv("LD_PRELOAD");
    if (!before || !*before) {
        setenv("LD_PRELOAD", library, 1);
        return;
    }
    if (strstr(before, library))
        return; /* `tidemark run` inside `tidemark run` */
    char *both = tmk_xformat("%s:%s", library, before);
    setenv("LD_PRELOAD", both, 1);
    free(both);
}

void tmk_watch_settings(const struct tmk_watch *w, struct tmk_setting ret[TMK_N_SETTINGS])
{
    const struct tmk_setting settings[TMK_N_SETTINGS] = {
        {"TIDEMARK_RUN", tmk_xstrdup(w->folder)},
        {"TIDEMARK_MAX_SIZE",
         w->max_size_bytes ? tmk_xformat("%" PRIu64, w->max_size_bytes) : NULL},
        {"TIDEMARK_RANKS", w->ranks ? tmk_xstrdup(w->ranks) : NULL},
        {"TIDEMARK_CPU_TENSORS", w->cpu_tensors ? tmk_xstrdup("1") : NULL},
        {"TIDEMARK_NATIVE", w->native ? tmk_xstrdup("1") : NULL},
        {"TIDEMARK_NO_STACKS", w->no_stacks ? tmk_xstrdup("1") : NULL},
        {"TIDEMARK_NO_MODULES", w->no_modules ? tmk_xstrdup("1") : NULL},
        {"TIDEMARK_NO_CATEGORIES", w->no_categories ? tmk_xstrdup("1") : NULL},
    };
    memcpy(ret, settings, sizeof settings);
}

static void set_environment(const struct tmk_watch *w)
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

_Noreturn void tmk_watch_become(const struct tmk_watch *w, int failure)
{
    set_environment(w);
    sigaction(SIGXFSZ, &inherited_xfsz, NULL);
    sigaction(SIGCHLD, &inherited_chld, NULL);
    sigprocmask(SIG_SETMASK, &inherited_mask, NULL);
    execvp(w->argv[0], w->argv);
    int reason = errno;
    (void)!write(failure, &reason, sizeof reason);
    _exit(127);
}

/* ---- our side ---- */

static void block_signals(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    sigaddset(ret_set, SIGCHLD);
    for (size_t i = 0; i < sizeof relayed / sizeof relayed[0]; i++)
        sigaddset(ret_set, relayed[i]);
    sigprocmask(SIG_BLOCK, ret_set, NULL);
}

/* What came for the program is not meant for the rest of us: drop it, then be as before. */
static void unblock_signals(const sigset_t *set)
{
    const struct timespec now = {0};
    while (sigtimedwait(set, NULL, &now) > 0)
        ;
    sigprocmask(SIG_SETMASK, &inherited_mask, NULL);
}

static void relay(pid_t child, const siginfo_t *info)
{
    bool from_process = info->si_code <= 0;
    if (from_process && info->si_pid != child)
        kill(child, info->si_signo);
}

/* ^Z: the program stops, and we are told too, in either order. When both have happened we stop as
 * well, so that the shell sees the job stop. A program stopped by another hand is left to it. */
struct job {
    pid_t child;
    bool asked_to_stop; /* we were */
    bool is_stopped;    /* the program is */
    int wait_status;    /* when it has ended */
};

static void stop_with_program(struct job *job)
{
    if (!job->asked_to_stop || !job->is_stopped)
        return;
    job->asked_to_stop = false;
    raise(SIGSTOP);
}

/* Look at what became of the program: true when it has ended. */
static bool has_ended(struct job *job)
{
    int status = 0;
    pid_t got;
    while ((got = waitpid(job->child, &status, WNOHANG | WUNTRACED | WCONTINUED)) == job->child) {
        job->is_stopped = WIFSTOPPED(status);
        job->wait_status = status;
        if (!WIFSTOPPED(status) && !WIFCONTINUED(status))
            return true;
    }
    return got < 0 && errno == ECHILD;
}

static int wait_for(pid_t child, const sigset_t *set)
{
    struct job job = {.child = child};
    for (;;) {
        siginfo_t info;
        if (sigwaitinfo(set, &info) < 0)
            continue;
        if (info.si_signo != SIGCHLD)
            relay(child, &info);
        else if (has_ended(&job))
            return job.wait_status;
        if (info.si_signo == SIGTSTP || info.si_signo == SIGCONT)
            job.asked_to_stop = info.si_signo == SIGTSTP;
        stop_with_program(&job);
    }
}

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
    return (struct tmk_outcome){.status = missing ? 127 : 126};
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

struct tmk_outcome tmk_watch_run(const struct tmk_watch *w)
{
    int failure[2];
    sigset_t set;
    if (pipe2(failure, O_CLOEXEC) < 0)
        tmk_die("cannot make a pipe: %s", strerror(errno));
    fflush(NULL);
    block_signals(&set);
    pid_t child = fork();
    if (child < 0)
        tmk_die("cannot start a process: %s", strerror(errno));
    if (child == 0)
        tmk_watch_become(w, failure[1]);
    close(failure[1]);
    int reason = tmk_watch_failure(failure[0]);
    int wait_status = wait_for(child, &set);
    unblock_signals(&set);
    return reason ? tmk_watch_not_started(w->argv[0], reason) : tmk_watch_outcome(wait_status);
}
