/* SPDX-License-Identifier: MIT */
/* record/core/seal.c - see seal.h. */
#include "record/core/seal.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "record/control/sandbox.h"
#include "record/core/helper.h"
#include "record/core/lane.h"
#include "record/core/recorder.h"
#include "record/core/refusal.h"
#include "record/loader/loader.h"

enum { OPEN = 0, CLOSING, CLOSED, REFUSED };

/* A helper thread that still runs under the filter may cost the program its life: wait longer than
 * at any other time. A thread that is inside a call needs microseconds; it may have jumped out of
 * it (siglongjmp) and never leave. */
static const uint64_t end_limit_ns = 5000000000u;
static const uint64_t calls_limit_ns = 200000000u;

_Atomic uint32_t tmk_seal_state;

/* ---- our calls on threads of the program ---- */

bool tmk_seal_enter(void)
{
    atomic_fetch_add(&tmk_recorder.control->n_calls, 1);
    if (!tmk_seal_is_closed())
        return true;
    tmk_seal_leave();
    return false;
}

void tmk_seal_leave(void)
{
    atomic_fetch_sub(&tmk_recorder.control->n_calls, 1);
}

static void wait_for_calls(void)
{
    uint64_t end = tmk_clock_monotonic_ns() + calls_limit_ns;
    _Atomic uint32_t *n_calls = &tmk_recorder.control->n_calls;
    for (uint32_t n; (n = atomic_load(n_calls)) > 0 && tmk_clock_monotonic_ns() < end;)
        tmk_futex_wait_while(n_calls, n, 1000000);
}

/* ---- closing ---- */

/* A vfork child runs in its parent's memory and has a process number of its own. A forked child's
 * page is zero. */
static bool is_borrowed(void)
{
    pid_t owner = atomic_load(&tmk_recorder.control->owner);
    return owner != 0 && owner != getpid();
}

void tmk_seal_close(void)
{
    uint32_t open = OPEN;
    if (is_borrowed()) {
        if (!tmk_lane.busy) /* else a handler's, that interrupted an event */
            tmk_lane.busy = TMK_LANE_LENT;
        return;
    }
    if (!atomic_compare_exchange_strong(&tmk_seal_state, &open, CLOSING)) {
        if (atomic_load(&tmk_recorder.control->owner) !=
            0) /* else forked while another closed it */
            tmk_futex_wait_while(&tmk_seal_state, CLOSING, end_limit_ns);
        return;
    }
    uint64_t end = tmk_clock_monotonic_ns() + end_limit_ns;
    uint32_t phase = atomic_load(&tmk_recorder.control->phase);
    if (phase == TMK_PHASE_IDLE || phase == TMK_PHASE_ARMING)
        tmk_refusal_note(TMK_STOP_SECCOMP, 0); /* there may be no trace to say it in */
    tmk_recorder_end_within(end_limit_ns, TMK_STOP_SECCOMP);
    wait_for_calls();
    tmk_helper_wait(end);
    tmk_futex_set(&tmk_seal_state, CLOSED);
}

void tmk_seal_refuse(bool is_refused)
{
    uint32_t before = is_refused ? OPEN : REFUSED;
    atomic_compare_exchange_strong(&tmk_seal_state, &before, is_refused ? REFUSED : OPEN);
}

/* ---- the stubs' side ---- */

/* 0: not looked for yet. */
extern _Atomic uintptr_t tmk_seal_next[2];
_Atomic uintptr_t tmk_seal_next[2];
void tmk_seal_stub_prctl(void);
void tmk_seal_stub_syscall(void);
#pragma weak tmk_seal_stub_prctl
#pragma weak tmk_seal_stub_syscall

static const char *const names[2] = {[TMK_SEAL_PRCTL] = "prctl", [TMK_SEAL_SYSCALL] = "syscall"};

/* A filter without a program is a question ("is there seccomp?"), to which the kernel says EFAULT;
 * so is strict mode with flags. */
static bool prctl_installs(const long *a)
{
    return (int)a[0] == PR_SET_SECCOMP &&
           (a[1] == SECCOMP_MODE_STRICT || (a[1] == SECCOMP_MODE_FILTER && a[2] != 0));
}

static bool syscall_installs(const long *a)
{
    if (a[0] == SYS_prctl)
        return prctl_installs(a + 1);
    unsigned operation = (unsigned)a[1], flags = (unsigned)a[2];
    return a[0] == SYS_seccomp &&
           ((operation == SECCOMP_SET_MODE_FILTER && a[3] != 0) ||
            (operation == SECCOMP_SET_MODE_STRICT && flags == 0 && a[3] == 0));
}

/* What is asked for while we look is the loader's own doing, or an allocator's: the stub makes that
 * call itself. */
static void find_next(void)
{
    static atomic_flag looks = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&looks))
        return;
    for (int i = 0; i < 2; i++)
        atomic_store(&tmk_seal_next[i], (uintptr_t)tmk_loader_symbol(RTLD_NEXT, names[i]));
}

__attribute__((constructor)) static void find_at_start(void)
{
    if (!atomic_load(&tmk_seal_next[TMK_SEAL_SYSCALL]))
        find_next();
}

void *tmk_seal_before(enum tmk_seal_call which, const long arguments[6])
{
    int before = errno;
    bool installs =
        which == TMK_SEAL_PRCTL ? prctl_installs(arguments) : syscall_installs(arguments);
    if (installs && !tmk_sandbox_is_trusted())
        tmk_seal_close();
    if (!atomic_load(&tmk_seal_next[which]))
        find_next();
    errno = before;
    return (void *)atomic_load(&tmk_seal_next[which]);
}

bool tmk_seal_is_name(const char *name)
{
    return strcmp(name, names[0]) == 0 || strcmp(name, names[1]) == 0;
}

void *tmk_seal_stub(const char *name, void *found)
{
    static void (*const stubs[2])(void) = {tmk_seal_stub_prctl, tmk_seal_stub_syscall};
    for (int i = 0; i < 2; i++)
        if (strcmp(name, names[i]) == 0 && found &&
            (uintptr_t)found == atomic_load(&tmk_seal_next[i]))
            return (void *)(uintptr_t)stubs[i];
    return NULL;
}

void *tmk_seal_behind(const char *name)
{
    for (int i = 0; i < 2; i++)
        if (strcmp(name, names[i]) == 0)
            return (void *)atomic_load(&tmk_seal_next[i]);
    return NULL;
}
