/* SPDX-License-Identifier: MIT */
/* inject/borrow.c - see borrow.h.
 *
 * The kernel reports several kinds of stops. The one that matters is the trap that PTRACE_INTERRUPT
 * causes: the thread is then leaving the kernel, at the place where interrupted system calls are
 * prepared for their restart. Registers put back there, with the call's number and ERESTART code in
 * them, make the kernel restart the call as if nothing had happened. In a stop at a system call's
 * end the same registers would reach the program unchanged, so tmk_borrow_end() always goes through
 * an interrupt.
 *
 * Signals are blocked rather than caught and kept by us: the kernel keeps them in order, with all
 * their data, and gives those for the whole process to other threads. Two kinds are not blocked:
 * faults, because a blocked one would reset the program's handler, and the two signals that the C
 * library sends to itself. Traps (int3, single step) would be easier to wait for than a word in
 * memory. But they are signals too; if the program ignores them, the kernel resets that.
 *
 * Our process may be killed at any moment, and the thread then continues as it is. Hence the order:
 * signals are blocked only after the thread has registers with which it returns, and unblocks
 * signals, by itself; in the end the general registers come last. Stops are observed without
 * consuming them (WNOWAIT), because the kernel delivers the signal that caused a stop if nobody has
 * consumed it. */
#include "inject/borrow.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "inject/subject.h"

enum {
    SIGNAL_CANCEL = 32, /* glibc's own */
    SIGNAL_SETXID = 33,
    LOOK_NS = 30000,       /* between two checks whether it has stopped */
    NOT_QUITE_THE_END = 64 /* of the stub's region: its stack's pointer is within from the start */
};

static uint64_t bit_of(int signal)
{
    return signal > 0 && signal <= 64 ? (uint64_t)1 << (signal - 1) : 0;
}

static uint64_t fault_bits(void)
{
    return bit_of(SIGSEGV) | bit_of(SIGBUS) | bit_of(SIGFPE) | bit_of(SIGILL) | bit_of(SIGTRAP) |
           bit_of(SIGSYS);
}

static int trace_thread(struct tmk_borrowed *b, unsigned request, uint64_t address, uint64_t data)
{
    /* The type of the request differs between C libraries, a cast to enum fits the GNU one. */
    if (ptrace((enum __ptrace_request)request, b->tid, (void *)(uintptr_t)address,
               (void *)(uintptr_t)data) == 0)
        return 0;
    b->os_error = errno;
    return errno == ESRCH ? TMK_ENOENT : TMK_EIO;
}

/* ---- stops ---- */

enum thread_stop { STOP_NONE, STOP_GONE, STOP_TRAP, STOP_SYSCALL, STOP_SIGNAL };

static enum thread_stop stop_kind_of(const siginfo_t *info, int *ret_signal)
{
    if (info->si_code != CLD_TRAPPED && info->si_code != CLD_STOPPED)
        return STOP_GONE;
    *ret_signal = info->si_status & 0x7f;
    if (info->si_status == (SIGTRAP | 0x80))
        return STOP_SYSCALL;
    return info->si_status >> 8 == PTRACE_EVENT_STOP ? STOP_TRAP : STOP_SIGNAL;
}

/* Check whether the thread has stopped by now. */
static enum thread_stop look_at_stop(struct tmk_borrowed *b, int *ret_signal)
{
    siginfo_t info = {0};
    int got = waitid(P_PID, (id_t)b->tid, &info, WEXITED | WSTOPPED | __WALL | WNOHANG | WNOWAIT);
    if (got < 0 ? errno == EINTR : info.si_pid == 0)
        return STOP_NONE;
    enum thread_stop stop = got < 0 ? STOP_GONE : stop_kind_of(&info, ret_signal);
    if (stop == STOP_GONE)
        (void)waitpid(b->tid, NULL, __WALL | WNOHANG);
    b->is_stopped = stop != STOP_GONE;
    b->is_between = stop == STOP_TRAP || stop == STOP_SIGNAL;
    return stop;
}

static void sleep_between_looks(void)
{
    struct timespec t = {.tv_nsec = LOOK_NS};
    nanosleep(&t, NULL);
}

static enum thread_stop wait_stop(struct tmk_borrowed *b, int *ret_signal, uint64_t deadline_ns)
{
    enum thread_stop stop;
    while ((stop = look_at_stop(b, ret_signal)) == STOP_NONE &&
           tmk_clock_monotonic_ns() < deadline_ns)
        sleep_between_looks();
    return stop;
}

static int resume_thread(struct tmk_borrowed *b, unsigned request, int signal)
{
    int rc = trace_thread(b, request, 0, (uint64_t)signal);
    if (rc == 0)
        b->is_stopped = b->is_between = false;
    return rc;
}

/* A signal has come although all that can be blocked are. 0 and the signal to continue with in
 * *ret, or TMK_EIO: the code that the thread runs for us has crashed. */
static int judge_stop_signal(struct tmk_borrowed *b, int signal, int *ret)
{
    siginfo_t info = {0};
    *ret = 0;
    if (signal == SIGNAL_CANCEL || signal == SIGNAL_SETXID) {
        *ret = signal;
        return 0;
    }
    (void)trace_thread(b, PTRACE_GETSIGINFO, 0, (uint64_t)(uintptr_t)&info);
    if ((bit_of(signal) & fault_bits()) && info.si_code > 0)
        return TMK_EIO;
    b->held_signals |= bit_of(signal);
    return 0;
}

int tmk_borrow_interrupt(struct tmk_borrowed *b, uint64_t deadline_ns)
{
    for (;;) {
        int signal = 0, on = 0;
        int rc = trace_thread(b, PTRACE_INTERRUPT, 0, 0);
        if (rc == 0 && b->is_stopped)
            rc = resume_thread(b, PTRACE_CONT, 0);
        enum thread_stop stop = rc < 0 ? STOP_GONE : wait_stop(b, &signal, deadline_ns);
        if (stop == STOP_TRAP)
            return 0;
        if (stop == STOP_GONE || stop == STOP_NONE)
            return stop == STOP_GONE ? TMK_ENOENT : TMK_EBUSY;
        if (stop == STOP_SYSCALL)
            continue;
        /* The signal is the program's own and came before we blocked any: the thread receives
         * it. */
        if (b->is_sent)
            rc = judge_stop_signal(b, signal, &on);
        else
            on = signal;
        if (rc < 0)
            return 0; /* crashed; a stop in which registers can be given back */
        rc = resume_thread(b, PTRACE_CONT, on);
        if (rc < 0)
            return rc;
    }
}

int tmk_borrow_go_on(struct tmk_borrowed *b)
{
    return resume_thread(b, PTRACE_CONT, 0);
}

int tmk_borrow_stop(struct tmk_borrowed *b, pid_t pid, pid_t tid, uint64_t deadline_ns)
{
    b->pid = pid;
    b->tid = tid;
    b->os_error = 0;
    b->is_stopped = b->is_between = b->is_saved = b->is_sent = b->is_restored = false;
    b->held_signals = 0;
    b->path.at = 0;
    int rc = trace_thread(b, PTRACE_SEIZE, 0, PTRACE_O_TRACESYSGOOD);
    if (rc < 0)
        return rc;
    b->stop_ns = tmk_clock_monotonic_ns();
    return tmk_borrow_interrupt(b, deadline_ns);
}

/* ---- doing things ---- */

/* A tracer may also write anywhere through /proc/PID/mem, which is faster, but some kernels are
 * built without that. */
int tmk_borrow_write(struct tmk_borrowed *b, const struct tmk_image *image, uint64_t address,
                     const void *from, size_t n)
{
    const uint8_t *bytes = from;
    if (tmk_image_write(image, address, from, n))
        return 0;
    for (size_t i = 0; i < n; i += 8) {
        uint8_t word[8] = {0};
        memcpy(word, bytes + i, n - i < 8 ? n - i : 8);
        int rc = trace_thread(b, PTRACE_POKEDATA, address + i, tmk_load_u64(word));
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Write the return path to `at`. TMK_EBUSY: it cannot jump from there to where the thread was. */
static int write_path(struct tmk_borrowed *b, const struct tmk_image *image, uint64_t at,
                      uint64_t scratch)
{
    uint8_t bytes[TMK_RETURN_MAX_BYTES];
    struct tmk_return_head head = {.magic = TMK_RETURN_MAGIC, .signal_mask = b->signal_mask};
    pid_t inner;
    char state;
    if (!tmk_subject_read_thread(b->tid, &state, &inner))
        return TMK_ENOENT;
    head.thread = (uint64_t)inner;
    memcpy(bytes, tmk_return, tmk_return_bytes);
    memcpy(bytes, &head, sizeof head);
    if (!tmk_return_fill(bytes, at, scratch, &b->saved.general))
        return TMK_EBUSY;
    if (!tmk_image_read(image, at, b->path.before, tmk_return_bytes))
        return TMK_EIO;
    if (tmk_load_u64(b->path.before) == TMK_RETURN_MAGIC) /* left by an attach that was killed */
        memset(b->path.before, 0, tmk_return_bytes);
    int rc = tmk_borrow_write(b, image, at, bytes, tmk_return_bytes);
    if (rc == 0)
        b->path.at = at;
    return rc;
}

static int write_path_somewhere(struct tmk_borrowed *b, const struct tmk_image *image,
                                const struct tmk_return_places *places)
{
    int rc = TMK_EFULL;
    for (unsigned i = 0; i < places->n; i++) {
        if (places->is_taken[i])
            continue;
        rc = write_path(b, image, places->at[i], places->scratch);
        if (rc != TMK_EBUSY)
            break;
    }
    return rc;
}

int tmk_borrow_save(struct tmk_borrowed *b, const struct tmk_image *image,
                    const struct tmk_return_places *places, bool is_patient)
{
    int rc = tmk_registers_get(b->tid, &b->saved);
    if (rc == 0 && is_patient && tmk_registers_are_special(&b->saved))
        rc = TMK_EBUSY;
    if (rc < 0)
        return rc;
    tmk_general_rewind(&b->saved.general);
    rc = trace_thread(b, PTRACE_GETSIGMASK, sizeof b->signal_mask,
                      (uint64_t)(uintptr_t)&b->signal_mask);
    if (rc == 0)
        rc = write_path_somewhere(b, image, places);
    b->is_saved = rc == 0;
    return rc;
}

/* Send the thread into the return path, then set its signal mask. In this order, a signal that
 * comes while signals are not blocked meets registers that tell the kernel what to do with the
 * interrupted call. */
static int enter_path(struct tmk_borrowed *b, uint64_t mask)
{
    struct user_regs_struct g = b->saved.general;
    tmk_general_for_return(&g, b->path.at);
    b->is_sent = true;
    int rc = tmk_general_set(b->tid, &g);
    return rc < 0 ? rc
                  : trace_thread(b, PTRACE_SETSIGMASK, sizeof mask, (uint64_t)(uintptr_t)&mask);
}

/* Give the thread registers with which it does something for us and then returns. */
static int send_thread(struct tmk_borrowed *b, const struct user_regs_struct *g)
{
    uint64_t mask = ~fault_bits() & ~bit_of(SIGNAL_CANCEL) & ~bit_of(SIGNAL_SETXID);
    int rc = b->is_sent ? 0 : enter_path(b, mask);
    return rc < 0 ? rc : tmk_general_set(b->tid, g);
}

/* Run to the next stop at the start or the end of a system call. */
static int run_to_syscall(struct tmk_borrowed *b, uint64_t deadline_ns)
{
    int on = 0;
    for (;;) {
        int signal = 0;
        int rc = resume_thread(b, PTRACE_SYSCALL, on);
        if (rc < 0)
            return rc;
        enum thread_stop stop = wait_stop(b, &signal, deadline_ns);
        if (stop == STOP_SYSCALL)
            return 0;
        if (stop == STOP_GONE || stop == STOP_NONE)
            return stop == STOP_GONE ? TMK_ENOENT : TMK_EBUSY;
        on = 0;
        if (stop == STOP_SIGNAL && (rc = judge_stop_signal(b, signal, &on)) < 0)
            return rc;
    }
}

int tmk_borrow_syscall(struct tmk_borrowed *b, long number, const uint64_t arguments[6],
                       int64_t *ret, uint64_t deadline_ns)
{
    struct user_regs_struct g = b->saved.general;
    tmk_general_for_syscall(&g, b->path.at + tmk_return_call, number, arguments);
    int rc = send_thread(b, &g);
    if (rc == 0)
        rc = run_to_syscall(b, deadline_ns);
    if (rc == 0)
        rc = run_to_syscall(b, deadline_ns);
    if (rc == 0)
        rc = tmk_general_get(b->tid, &g);
    if (rc == 0)
        *ret = tmk_general_result(&g);
    return rc;
}

static int wait_word(struct tmk_borrowed *b, const struct tmk_image *image, uint64_t done,
                     uint64_t deadline_ns)
{
    for (;;) {
        uint32_t word = 0;
        int signal = 0, on = 0;
        if (tmk_image_read(image, done, &word, sizeof word) && word)
            return 0;
        enum thread_stop stop = look_at_stop(b, &signal);
        int rc = stop == STOP_GONE ? TMK_ENOENT : 0;
        if (stop == STOP_SIGNAL)
            rc = judge_stop_signal(b, signal, &on);
        if (rc == 0 && stop != STOP_NONE)
            rc = resume_thread(b, PTRACE_CONT, on);
        if (rc < 0)
            return rc;
        if (tmk_clock_monotonic_ns() >= deadline_ns)
            return TMK_EBUSY;
        sleep_between_looks();
    }
}

/* Write to the return path where the stub's stack is, before a thread runs on it. */
static int announce_stub(struct tmk_borrowed *b, const struct tmk_image *image,
                         const struct tmk_stub_run *run)
{
    const uint64_t words[2] = {run->region, run->region_bytes};
    return tmk_borrow_write(b, image, b->path.at + offsetof(struct tmk_return_head, region), words,
                            sizeof words);
}

int tmk_borrow_run(struct tmk_borrowed *b, const struct tmk_image *image,
                   const struct tmk_stub_run *run, uint64_t deadline_ns)
{
    if (!b->is_stopped)
        return wait_word(b, image, run->done, deadline_ns);
    struct user_regs_struct g = b->saved.general;
    tmk_general_for_stub(&g, run->code, run->block,
                         run->region + run->region_bytes - NOT_QUITE_THE_END);
    int rc = announce_stub(b, image, run);
    if (rc == 0)
        rc = send_thread(b, &g);
    if (rc == 0)
        rc = resume_thread(b, PTRACE_CONT, 0);
    return rc < 0 ? rc : wait_word(b, image, run->done, deadline_ns);
}

/* ---- the end ---- */

/* Whether the thread is stopped and has not returned to its own work. */
static bool is_still_borrowed(struct tmk_borrowed *b, const struct tmk_image *image)
{
    struct user_regs_struct g;
    return b->is_stopped && b->is_sent && tmk_general_get(b->tid, &g) == 0 &&
           tmk_return_has(image, b->path.at, &g);
}

/* The vector registers come first: from then on the return path restores everything that is
 * missing. */
int tmk_borrow_recall(struct tmk_borrowed *b, const struct tmk_image *image, uint64_t deadline_ns)
{
    int rc = tmk_borrow_interrupt(b, deadline_ns);
    if (rc < 0)
        return rc;
    return is_still_borrowed(b, image) ? tmk_extended_set(b->tid, &b->saved) : TMK_EBUSY;
}

/* Restart a call that the stop ended in EINTR, also in a thread that was stopped but not used. */
static void rewind_unsaved(struct tmk_borrowed *b)
{
    struct user_regs_struct g, before;
    if (tmk_general_get(b->tid, &g) < 0)
        return;
    before = g;
    tmk_general_rewind(&g);
    if (memcmp(&g, &before, sizeof g) != 0)
        (void)tmk_general_set(b->tid, &g);
}

static void send_held(const struct tmk_borrowed *b)
{
    for (int signal = 1; signal <= 64; signal++)
        if (b->held_signals & bit_of(signal))
            (void)syscall(SYS_tgkill, b->pid, b->tid, signal);
}

/* Restore a thread that is still borrowed. */
static void restore_thread(struct tmk_borrowed *b)
{
    int rc = tmk_extended_set(b->tid, &b->saved);
    if (rc == 0)
        rc = enter_path(b, b->signal_mask);
    if (rc == 0)
        rc = tmk_general_set(b->tid, &b->saved.general);
    b->is_restored = rc == 0;
}

/* Let go of a thread that was stopped but not used, or that has returned by itself; note whether it
 * has left the return path. */
static void leave_thread_alone(struct tmk_borrowed *b, const struct tmk_image *image)
{
    struct user_regs_struct g;
    rewind_unsaved(b);
    b->is_restored = !b->is_sent || (tmk_general_get(b->tid, &g) == 0 &&
                                     !tmk_return_is_needed(image, b->path.at, &g));
}

uint64_t tmk_borrow_end(struct tmk_borrowed *b, const struct tmk_image *image)
{
    enum { LONG_NS = 2000000000 };
    if (!b->is_between)
        (void)tmk_borrow_interrupt(b, tmk_clock_monotonic_ns() + LONG_NS);
    if (is_still_borrowed(b, image))
        restore_thread(b);
    else if (b->is_stopped)
        leave_thread_alone(b, image);
    if (b->path.at && b->is_restored)
        (void)tmk_borrow_write(b, image, b->path.at, b->path.before, tmk_return_bytes);
    (void)trace_thread(b, PTRACE_DETACH, 0, 0);
    b->is_stopped = b->is_between = b->is_saved = false;
    send_held(b);
    return tmk_clock_monotonic_ns() - b->stop_ns;
}
