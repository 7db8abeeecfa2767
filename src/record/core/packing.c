/* SPDX-License-Identifier: MIT */
/* record/core/packing.c - see packing.h. */
#include "record/core/packing.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "record/core/recorder.h"
#include "record/core/seal.h"

void tmk_packing_sleep(long ns)
{
    struct timespec timeout = {.tv_nsec = ns};
    syscall(SYS_futex, &tmk_recorder.control->stop, FUTEX_WAIT_PRIVATE, 0, &timeout, NULL, 0);
}

void tmk_packing_hold(uint64_t until_ns)
{
    atomic_store(&tmk_recorder.control->hold_until_ns, until_ns);
}

bool tmk_packing_is_held(void)
{
    uint64_t until = atomic_load(&tmk_recorder.control->hold_until_ns);
    return until != 0 && tmk_clock_monotonic_ns() < until;
}

void tmk_packing_hurry(void)
{
    struct tmk_control *c = tmk_recorder.control;
    if (tmk_recorder_is_off() || !tmk_seal_enter())
        return;
    atomic_store(&c->hurry, 1);
    atomic_store(&c->sample, 1);
    atomic_store(&tmk_fast_path.slept, UINT64_MAX);
    syscall(SYS_futex, &c->stop, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    tmk_seal_leave();
}
