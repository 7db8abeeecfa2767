/* SPDX-License-Identifier: MIT */
/* cli/run/relay.c - see relay.h.
 *
 * The program stays in our process group, so that a terminal treats both as one job. Signals are
 * blocked and taken one by one with sigtimedwait(), which says where each came from; while the
 * program runs there are no handlers and no races. The program is waited for only here, so its
 * number is nobody else's while we send to it.
 *
 * A fault of our own (SIGSEGV ...) ends us although it is blocked: the kernel sees to that. Only
 * one that somebody sent is ever taken from the queue. */
#include "cli/run/relay.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "cli/run/raw_signals.h"
#include "kit/kernel_files.h"

static uint64_t inherited_mask;
static bool is_held;

/* What can be blocked: the kernel leaves out SIGKILL and SIGSTOP by itself. */
static const uint64_t all_signals = ~0ull;
static const uint64_t child_signal = 1ull << (SIGCHLD - 1);
static const uint64_t stop_signals =
    1ull << (SIGTSTP - 1) | 1ull << (SIGTTIN - 1) | 1ull << (SIGTTOU - 1);

enum { LOOK_MS = 50, FIRST_QUEUED = 32 };

/* These act on us again when the program has ended. */
static const int enders[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

void tmk_relay_prepare(void)
{
    inherited_mask = tmk_raw_signals_mask(SIG_BLOCK, 0);
}

void tmk_relay_restore(void)
{
    tmk_raw_signals_mask(SIG_SETMASK, inherited_mask);
}

bool tmk_relay_hold(void)
{
    bool was_held = is_held;
    tmk_raw_signals_mask(SIG_SETMASK,
                         all_signals); /* a thread made since has unblocked 32 and 33 */
    is_held = true;
    return !was_held;
}

/* ---- handing on ---- */

static void send_on(pid_t program, siginfo_t *info)
{
    int number = info->si_signo;
    if (info->si_code != SI_QUEUE ||
        syscall(SYS_rt_sigqueueinfo, program, number, info) < 0) /* its queue may be full */
        kill(program, number);
}

/* Sent by the kernel to us alone and yet the program's: files and timers that were set up by who
 * started us, and the end of the terminal, of which the leader of its session is told. */
static bool is_kernels_to_program(int number)
{
    return number == SIGALRM || number == SIGIO || number == SIGURG ||
           (number == SIGHUP && getsid(0) == getpid());
}

/* We caused it: by a message that nobody reads, or a file that a limit keeps from growing. */
static bool is_own(const siginfo_t *info)
{
    return (info->si_signo == SIGPIPE || info->si_signo == SIGXFSZ) && info->si_code <= 0 &&
           info->si_pid == getpid();
}

static bool is_for_program(const struct tmk_relay *r, const siginfo_t *info)
{
    if (info->si_code > 0)
        return is_kernels_to_program(info->si_signo);
    return !is_own(info) && info->si_pid != r->program;
}

/* A terminal's ^C that came before the fork did not reach the program. One that came after it did,
 * but waits there as it does here, and a second of the same number makes no difference. */
void tmk_relay_start(struct tmk_relay *r, pid_t program)
{
    siginfo_t info;
    *r = (struct tmk_relay){.program = program};
    tmk_group_probe_start(&r->probe);
    while (tmk_raw_signals_wait(all_signals & ~stop_signals & ~child_signal, &info, 0) > 0) {
        (void)tmk_group_probe_take(&r->probe, info.si_signo);
        if (!is_own(&info))
            send_on(program, &info);
    }
    r->fd = tmk_raw_signals_fd(-1, all_signals);
}

/* Take a signal that waits; true when the program has got it already, as all of the group have, or
 * when it is gone: a stop takes a continue away.
 *
 * Two of a number below 32 that wait become one, at us and at the probe each for itself. So the
 * probe is asked before and after we take ours: what it has got in between has become one with
 * ours, or waits for us now. Nobody can sigqueue() to a group. */
static bool take_from_queue(struct tmk_relay *r, int number, siginfo_t *ret)
{
    uint64_t bit = tmk_raw_signal_bit(number);
    bool merges = number < FIRST_QUEUED;
    bool reached = merges && (tmk_group_probe_take(&r->probe, number) || (r->group_sent & bit));
    r->group_sent &= ~bit;
    if (tmk_raw_signals_wait(bit, ret, 0) != number)
        return true;
    if (merges && tmk_group_probe_take(&r->probe, number))
        r->group_sent |= tmk_raw_signals_pending() & bit;
    if (ret->si_code == SI_QUEUE)
        return false;
    return merges ? reached : tmk_group_probe_take(&r->probe, number);
}

/* ---- job control ----
 *
 * ^Z: the program stops, and we are told too, in either order. When both have happened we stop as
 * well, so that the shell sees the job stop. A program stopped by another hand is left to it.
 *
 * The signal that told us stays pending until then, and stops us when it is unblocked. Should the
 * job be continued meanwhile, the kernel takes it away, and we do not stop: whatever is done
 * between two steps of ours, both are stopped or none. (But for a stop signal that is sent to us
 * alone in the moment in which we are continued: it stops us alone, until the next continue.)
 *
 * A program with a handler of its own need not stop, and may be sent the same again. For one that
 * does not stop by itself, or has not after a moment, the signal is taken and remembered. */

/* A stop signal that waits: did it reach us alone? One that the probe has not got because the group
 * was continued meanwhile has been taken away here too. */
static bool is_stop_for_us(struct tmk_relay *r, int number)
{
    return !tmk_group_probe_take(&r->probe, number) &&
           (tmk_raw_signals_pending() & tmk_raw_signal_bit(number));
}

/* Whether the program does not stop by itself when it gets this one: it has a handler, or lets the
 * signal wait, or ignores it. */
static bool is_survived(pid_t program, int number)
{
    static const char *const sets[] = {"\nSigBlk:\t", "\nSigIgn:\t", "\nSigCgt:\t"};
    char text[4096];
    uint64_t found = 0;
    if (tmk_kernel_file_read(text, sizeof text, "/proc/%d/status", (int)program) < 0)
        return false;
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        const char *at = strstr(text, sets[i]);
        found |= at ? strtoull(at + strlen(sets[i]), NULL, 16) : 0;
    }
    return found & tmk_raw_signal_bit(number);
}

/* It is taken at once, as others are: the next one of this number shall not become one with it. */
static void take_survived(struct tmk_relay *r, int number)
{
    siginfo_t info = {0};
    if (!take_from_queue(r, number, &info) && is_for_program(r, &info))
        send_on(r->program, &info);
    r->survived |= tmk_raw_signal_bit(number);
}

/* Of those that have just come, hand on what reached us alone. */
static void take_stop_requests(struct tmk_relay *r)
{
    uint64_t waiting = tmk_raw_signals_pending() & stop_signals, before = r->stops;
    for (uint64_t new = waiting & ~before; new; new &= new - 1) {
        int number = __builtin_ctzll(new) + 1;
        if (is_survived(r->program, number)) {
            take_survived(r, number);
            waiting &= ~tmk_raw_signal_bit(number);
        } else if (is_stop_for_us(r, number)) {
            kill(r->program, number);
        }
    }
    r->stops = waiting;
    if (waiting != before)
        tmk_raw_signals_fd(r->fd, all_signals & ~waiting);
}

/* The program had its time, and has not stopped. It may yet, but we do not let the signal wait. */
static void give_up_stops(struct tmk_relay *r)
{
    siginfo_t unused;
    if (!r->stops || r->is_stopped)
        return;
    for (uint64_t left = r->stops; left; left &= left - 1) {
        int number = __builtin_ctzll(left) + 1;
        (void)tmk_group_probe_take(&r->probe, number);
        tmk_raw_signals_wait(tmk_raw_signal_bit(number), &unused, 0);
    }
    r->survived |= r->stops;
    r->stops = 0;
    tmk_raw_signals_fd(r->fd, all_signals);
}

static bool is_unchanged(const struct tmk_relay *r)
{
    siginfo_t info = {0};
    const int how = WEXITED | WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT;
    return waitid(P_PID, (id_t)r->program, &info, how) == 0 && info.si_pid == 0;
}

/* The program has stopped after all, of its own will: send ourselves what we took before. A
 * continue that came meanwhile takes it away, or is seen here. */
static void renew_stop(struct tmk_relay *r)
{
    siginfo_t unused;
    int number = __builtin_ctzll(r->survived) + 1;
    uint64_t bit = tmk_raw_signal_bit(number);
    r->survived = 0;
    if (tmk_raw_signals_pending() & tmk_raw_signal_bit(SIGCONT))
        return;
    kill(getpid(), number);
    if (is_unchanged(r))
        r->stops |= bit;
    else
        tmk_raw_signals_wait(bit, &unused, 0);
}

static void stop_with_program(struct tmk_relay *r)
{
    if (r->is_stopped && !r->stops && r->survived)
        renew_stop(r);
    if (!r->stops || !r->is_stopped)
        return;
    r->survived = 0;
    tmk_raw_signals_mask(SIG_UNBLOCK, stop_signals); /* here we are stopped */
    tmk_raw_signals_mask(SIG_BLOCK, stop_signals);
    take_stop_requests(r);
}

/* ---- waiting ---- */

/* Look at what became of the program: true when it has ended. */
static bool has_ended(struct tmk_relay *r)
{
    int status = 0;
    pid_t got;
    while ((got = waitpid(r->program, &status, WNOHANG | WUNTRACED | WCONTINUED)) == r->program) {
        r->is_stopped = WIFSTOPPED(status);
        r->wait_status = status;
        if (!WIFSTOPPED(status) && !WIFCONTINUED(status))
            return true;
    }
    return got < 0 && errno == ECHILD;
}

/* Until something has come, or the program had its time to stop. Without a descriptor we look now
 * and then. */
static void sleep_until_signal(struct tmk_relay *r)
{
    struct pollfd any = {.fd = r->fd, .events = POLLIN};
    bool is_awaited = r->stops && !r->is_stopped;
    if (poll(&any, 1, r->fd < 0 || is_awaited ? LOOK_MS : -1) == 0 && is_awaited)
        give_up_stops(r);
}

/* Deal with one signal, if one waits: true when the program has ended. */
static bool take_signal(struct tmk_relay *r)
{
    uint64_t waiting = tmk_raw_signals_pending() & ~stop_signals;
    if (!waiting)
        return false;
    siginfo_t info = {0};
    int number = __builtin_ctzll(waiting) + 1;
    if (take_from_queue(r, number, &info))
        r->reached |= tmk_raw_signal_bit(number);
    else if (is_for_program(r, &info))
        send_on(r->program, &info);
    if (number == SIGCONT)
        r->survived = 0;
    return number == SIGCHLD && has_ended(r);
}

int tmk_relay_wait(struct tmk_relay *r)
{
    for (bool ended = false; !ended; stop_with_program(r)) {
        sleep_until_signal(r);
        take_stop_requests(r);
        ended = take_signal(r);
    }
    if (r->fd >= 0)
        close(r->fd);
    tmk_group_probe_stop(&r->probe);
    return r->wait_status;
}

/* ---- afterwards ---- */

/* What came for the program is not meant for the rest of us. */
static void drop_pending(void)
{
    siginfo_t info;
    while (tmk_raw_signals_wait(all_signals, &info, 0) > 0)
        ;
}

void tmk_relay_let_go(void)
{
    drop_pending();
    is_held = false;
    tmk_relay_restore();
}

void tmk_relay_die(int number)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    signal(number, SIG_DFL);
    tmk_raw_signals_mask(SIG_UNBLOCK, tmk_raw_signal_bit(number));
    kill(getpid(), number);
    _exit(128 + number);
}

static int final_status;
static pid_t final_pid; /* not of a child that we have forked since */
static void (*final_leave)(void);

static void leave_early(int number)
{
    if (getpid() != final_pid)
        _exit(128 + number);
    final_leave();
    _exit(final_status);
}

static void leave_on(int number)
{
    struct sigaction action = {.sa_handler = leave_early}, before;
    sigfillset(&action.sa_mask);
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

void tmk_relay_finish(int status, void (*leave)(void))
{
    uint64_t mask = all_signals;
    final_status = status;
    final_leave = leave;
    final_pid = getpid();
    drop_pending();
    for (size_t i = 0; i < sizeof enders / sizeof enders[0]; i++) {
        leave_on(enders[i]);
        mask &= ~tmk_raw_signal_bit(enders[i]);
    }
    mask &= ~(stop_signals | tmk_raw_signal_bit(SIGCONT));
    tmk_raw_signals_mask(SIG_SETMASK, mask | inherited_mask);
}
