/* SPDX-License-Identifier: MIT */
/* cli/sweep/keeper.c - see keeper.h. */
#include "cli/sweep/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "kit/kernel_files.h"

enum { CHILDREN_BYTES = 65536, MAX_CHILDREN = 1024 };
#define GRACE_NS 10000000000u     /* from SIGTERM to SIGKILL, for the program */
#define REST_GRACE_NS 2000000000u /* the same for processes that it left */
#define GIVE_UP_NS 10000000000u   /* a process that survives SIGKILL is stuck in the kernel */

/* ---- in the keeper ---- */

struct keeper_state {
    sigset_t set;
    pid_t program; /* also its process group */
    struct tmk_kept kept;
    bool has_ended;      /* the program has ended */
    uint64_t kill_at_ns; /* 0: the end was not requested */
};

_Noreturn static void become_program(const struct tmk_keeping *how, pid_t keeper, int failure)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != keeper)
        _exit(127); /* the parent died before the signal was set up */
    setpgid(0, 0);
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0)
        dup2(nothing, STDIN_FILENO);
    dup2(how->output, STDOUT_FILENO);
    dup2(how->output, STDERR_FILENO);
    for (unsigned i = 0; i < how->n_settings; i++)
        setenv(how->settings[i].name, how->settings[i].value, 1);
    tmk_watch_become(how->watch, failure);
}

/* List our children, including the program's orphans; at most MAX_CHILDREN. */
static unsigned list_children(long *to)
{
    static char text[CHILDREN_BYTES];
    int pid = (int)getpid();
    if (tmk_kernel_file_read(text, sizeof text, "/proc/self/task/%d/children", pid) < 0)
        return 0;
    return tmk_kernel_numbers(text, to, MAX_CHILDREN);
}

/* Signal all known children; more appear as these die. */
static void signal_all(const struct keeper_state *k, int number)
{
    static long children[MAX_CHILDREN];
    unsigned n = list_children(children);
    kill(-k->program, number);
    for (unsigned i = 0; i < n; i++)
        kill((pid_t)children[i], number);
}

/* Reap children; true: none is left. */
static bool reap_children(struct keeper_state *k)
{
    pid_t got;
    int status;
    while ((got = waitpid(-1, &status, WNOHANG)) > 0)
        if (got == k->program) {
            k->kept.wait_status = status;
            k->has_ended = true;
        }
    return got < 0 && errno == ECHILD;
}

/* Wait for a signal, at most `ns`. */
static int wait_signal(const struct keeper_state *k, uint64_t ns)
{
    struct timespec limit = {.tv_sec = (time_t)(ns / 1000000000u),
                             .tv_nsec = (long)(ns % 1000000000u)};
    return sigtimedwait(&k->set, NULL, &limit);
}

static void on_keeper_signal(struct keeper_state *k, int number, uint64_t now)
{
    if (number == SIGTERM && !k->kill_at_ns) {
        k->kill_at_ns = now + GRACE_NS;
        kill(-k->program, SIGTERM);
    } else if (number == SIGQUIT) {
        k->kill_at_ns = now;
    }
}

static void wait_for_program(struct keeper_state *k)
{
    while (!reap_children(k) && !k->has_ended) {
        uint64_t now = tmk_clock_monotonic_ns();
        if (k->kill_at_ns && now >= k->kill_at_ns) {
            signal_all(k, SIGKILL);
            wait_signal(k, 10000000);
        } else {
            int number = wait_signal(k, k->kill_at_ns ? k->kill_at_ns - now : 3600000000000u);
            on_keeper_signal(k, number, tmk_clock_monotonic_ns()); /* the wait may have been long */
        }
    }
}

static void end_rest(struct keeper_state *k)
{
    uint64_t start = tmk_clock_monotonic_ns(), now = start;
    bool at_once = k->kill_at_ns != 0;
    if (reap_children(k))
        return;
    k->kept.left_some = true;
    signal_all(k, at_once ? SIGKILL : SIGTERM);
    while (!reap_children(k) && now - start < REST_GRACE_NS + GIVE_UP_NS) {
        int number = wait_signal(k, 20000000);
        now = tmk_clock_monotonic_ns();
        at_once |= number == SIGQUIT || number == SIGTERM || now - start > REST_GRACE_NS;
        if (at_once)
            signal_all(k, SIGKILL);
    }
}

_Noreturn static void keep(const struct tmk_keeping *how, pid_t parent, int report)
{
    struct keeper_state k = {0};
    int failure[2];
    sigemptyset(&k.set);
    static const int taken[] = {SIGCHLD, SIGTERM, SIGQUIT, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < TMK_N(taken); i++)
        sigaddset(&k.set, taken[i]);
    sigprocmask(SIG_BLOCK, &k.set, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGQUIT);
    if (getppid() != parent || pipe2(failure, O_CLOEXEC) < 0)
        _exit(1);
    pid_t self = getpid();
    k.program = fork();
    if (k.program == 0)
        become_program(how, self, failure[1]);
    close(failure[1]);
    if (k.program < 0) {
        k.kept.failure = errno;
    } else {
        setpgid(k.program, k.program); /* in both processes, whichever is first */
        k.kept.failure = tmk_watch_failure(failure[0]);
        wait_for_program(&k);
        end_rest(&k);
    }
    (void)!write(report, &k.kept, sizeof k.kept);
    _exit(0);
}

/* ---- on our side ---- */

int tmk_keeper_start(const struct tmk_keeping *how, struct tmk_keeper *ret)
{
    int report[2];
    if (pipe2(report, O_CLOEXEC) < 0)
        return errno;
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        keep(how, parent, report[1]);
    int reason = pid < 0 ? errno : 0;
    close(report[1]);
    if (reason) {
        close(report[0]);
        return reason;
    }
    *ret = (struct tmk_keeper){.pid = pid, .report = report[0]};
    return 0;
}

void tmk_keeper_stop(const struct tmk_keeper *k)
{
    kill(k->pid, SIGTERM);
}

void tmk_keeper_kill(const struct tmk_keeper *k)
{
    kill(k->pid, SIGQUIT);
}

bool tmk_keeper_ended(struct tmk_keeper *k, struct tmk_kept *ret)
{
    int status;
    if (waitpid(k->pid, &status, WNOHANG) == 0)
        return false;
    struct tmk_kept kept = {.wait_status = SIGKILL}; /* if the keeper itself was killed */
    if (read(k->report, &kept, sizeof kept) != sizeof kept)
        kept = (struct tmk_kept){.wait_status = SIGKILL};
    close(k->report);
    *k = (struct tmk_keeper){.report = -1};
    *ret = kept;
    return true;
}
