/* SPDX-License-Identifier: MIT */
/* record/control/seccomp.c - see seccomp.h. */
#include "record/control/seccomp.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "record/control/sandbox.h"
#include "record/control/session.h"
#include "record/core/helper.h"
#include "record/core/lane.h"
#include "record/core/recorder.h"
#include "record/core/refusal.h"
#include "record/core/seal.h"
#include "record/loader/import_slots.h"
#include "record/loader/library.h"
#include "record/loader/loader.h"
#include "trace/layout.h"

/* A helper thread that still runs under the filter may cost the program its life, so wait longer
 * than anywhere else. */
static const uint64_t end_limit_ns = 5000000000u;

/* ---- closing ---- */

/* A vfork child runs in its parent's memory and has its own process number. A forked child's page
 * is zero. */
static bool is_vfork_child(void)
{
    pid_t owner = atomic_load(&tmk_recorder.control->owner);
    return owner != 0 && owner != getpid();
}

void tmk_seccomp_close(void)
{
    if (tmk_seal_has_closed()) /* before this filter there was another one, which may kill */
        return;
    if (is_vfork_child()) {
        if (!tmk_lane.busy) /* otherwise it is a handler's, that interrupted an event */
            tmk_lane.busy = TMK_LANE_LENT;
        return;
    }
    if (!tmk_seal_begin_closing()) {
        if (atomic_load(&tmk_recorder.control->owner) !=
            0) /* otherwise it was forked while another thread closed it */
            tmk_seal_wait_until_closed(end_limit_ns);
        return;
    }
    uint64_t end = tmk_clock_monotonic_ns() + end_limit_ns;
    uint32_t phase = atomic_load(&tmk_recorder.control->phase);
    if (phase == TMK_PHASE_IDLE || phase == TMK_PHASE_ARMING)
        tmk_refusal_note(TMK_STOP_SECCOMP, 0); /* there may be no trace to say it in */
    tmk_session_end_within(end_limit_ns, TMK_STOP_SECCOMP);
    tmk_seal_wait_for_calls();
    tmk_helper_wait(end);
    tmk_seal_end_closing();
}

/* ---- the stubs' side ---- */

/* the next function behind each stub; 0: not looked for yet */
extern _Atomic uintptr_t tmk_seccomp_next[2];
_Atomic uintptr_t tmk_seccomp_next[2];
void tmk_seccomp_stub_prctl(void);
void tmk_seccomp_stub_syscall(void);
#pragma weak tmk_seccomp_stub_prctl
#pragma weak tmk_seccomp_stub_syscall

static const char *const call_names[2] = {
    [TMK_SECCOMP_PRCTL] = "prctl", [TMK_SECCOMP_SYSCALL] = "syscall"};

/* A filter without a program is a question ("is there seccomp?"), which the kernel answers with
 * EFAULT; so is strict mode with flags. */
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

/* A prctl() or syscall() during this search comes from the loader or an allocator: the stub makes
 * that call itself. */
static void find_next_functions(void)
{
    static atomic_flag looks = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&looks))
        return;
    for (int i = 0; i < 2; i++)
        atomic_store(&tmk_seccomp_next[i], (uintptr_t)tmk_loader_symbol(RTLD_NEXT, call_names[i]));
}

__attribute__((constructor)) static void find_at_start(void)
{
    if (!atomic_load(&tmk_seccomp_next[TMK_SECCOMP_SYSCALL]))
        find_next_functions();
}

void *tmk_seccomp_before(enum tmk_seccomp_call which, const long arguments[6])
{
    int before = errno;
    bool installs =
        which == TMK_SECCOMP_PRCTL ? prctl_installs(arguments) : syscall_installs(arguments);
    if (installs && !tmk_sandbox_is_trusted())
        tmk_seccomp_close();
    if (!atomic_load(&tmk_seccomp_next[which]))
        find_next_functions();
    errno = before;
    return (void *)atomic_load(&tmk_seccomp_next[which]);
}

bool tmk_seccomp_is_name(const char *name)
{
    return strcmp(name, call_names[0]) == 0 || strcmp(name, call_names[1]) == 0;
}

void *tmk_seccomp_stub(const char *name, void *found)
{
    static void (*const stubs[2])(void) = {tmk_seccomp_stub_prctl, tmk_seccomp_stub_syscall};
    for (int i = 0; i < 2; i++)
        if (strcmp(name, call_names[i]) == 0 && found &&
            (uintptr_t)found == atomic_load(&tmk_seccomp_next[i]))
            return (void *)(uintptr_t)stubs[i];
    return NULL;
}

/* ---- in programs that were there before us ---- */

/* The function that our stub of that name jumps on to; NULL: not known. */
static void *function_behind(const char *name)
{
    for (int i = 0; i < 2; i++)
        if (strcmp(name, call_names[i]) == 0)
            return (void *)atomic_load(&tmk_seccomp_next[i]);
    return NULL;
}

/* A bound slot that leads elsewhere than to the function behind our stub belongs to another
 * library. The C library's own slots are left alone. */
static void hook_slot(const struct tmk_import_slot *slot, void *unused)
{
    (void)unused;
    const char *name = slot->name;
    if ((name[0] != 'p' && name[0] != 's') || !tmk_seccomp_is_name(name) ||
        tmk_library_is_named(slot->path, "libc.so"))
        return;
    uintptr_t now = __atomic_load_n(slot->at, __ATOMIC_ACQUIRE);
    bool is_unbound = tmk_import_slot_is_unbound(slot, now);
    void *stub = tmk_seccomp_stub(name, is_unbound ? function_behind(name) : (void *)now);
    if (stub)
        (void)tmk_import_slot_write(slot, (uintptr_t)stub, false);
}

void tmk_seccomp_hook_calls(void)
{
    tmk_import_slots_visit(hook_slot, NULL);
}
