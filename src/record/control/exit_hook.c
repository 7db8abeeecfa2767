/* SPDX-License-Identifier: MIT */
/* record/control/exit_hook.c - _exit(), by which forked workers end: os._exit() of Python,
 * DataLoader's workers.
 *
 * No destructor runs then, and the ring of each such worker would lie in memory until somebody
 * merged it. So the recording is brought to its end first, as exit() does it. Only by the process
 * that is recorded: a vfork()ed child shares the memory of its parent, and its _exit() must not end
 * the parent's recording. Where such a child restricts its system calls and becomes another
 * program, and its parent's thread reports nothing before it calls _exit(), the ring is left to be
 * merged. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/control/session.h"
#include "record/core/lane.h"
#include "record/core/recorder.h"
#include "record/loader/loader.h"

#define SHOWN __attribute__((visibility("default")))
SHOWN _Noreturn void _exit(int status);
SHOWN _Noreturn void _Exit(int status);

typedef void exit_function(int status);

static exit_function *next_exit;

/* Now, because looking it up takes the loader's lock. */
__attribute__((constructor)) static void find_next_exit(void)
{
    next_exit = (exit_function *)tmk_loader_symbol(RTLD_NEXT, "_exit");
}

_Noreturn static void end_process(int status)
{
    bool is_lent = tmk_lane.busy == TMK_LANE_LENT; /* then not even getpid() may be called */
    if (is_lent)
        tmk_lane.busy = 0; /* a vfork()ed child's lane is its parent's */
    if (!is_lent && atomic_load(&tmk_recorder.control->running) &&
        tmk_recorder.pid == (pid_t)syscall(SYS_getpid))
        tmk_session_finish(false);
    if (next_exit)
        next_exit(status);
    for (;;)
        syscall(SYS_exit_group, status);
}

void _exit(int status)
{
    end_process(status);
}

void _Exit(int status)
{
    end_process(status);
}
