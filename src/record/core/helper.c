/* SPDX-License-Identifier: MIT */
/* record/core/helper.c - see helper.h. */
#include "record/core/helper.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/signals.h"
#include "record/core/recorder.h"
#include "record/core/seal.h"

enum { FREE = 0, STARTING = -1 }; /* of a slot; else a thread's number */

static struct helper_start {
    void *(*main)(void *arg);
    void *arg;
} starts[TMK_MOST_HELPERS];

static _Atomic int32_t *helper_slots(void)
{
    return tmk_recorder.control->helpers;
}

static bool is_thread_gone(int32_t thread)
{
    return thread == FREE ||
           (thread != STARTING && syscall(SYS_tgkill, getpid(), thread, 0) < 0 && errno == ESRCH);
}

/* A slot that is free, or that of a thread which has ended; -1: none. */
static int take_slot(void)
{
    for (int i = 0; i < TMK_MOST_HELPERS; i++) {
        int32_t before = atomic_load(&helper_slots()[i]);
        if (is_thread_gone(before) &&
            atomic_compare_exchange_strong(&helper_slots()[i], &before, STARTING))
            return i;
    }
    return -1;
}

static void *run_helper(void *arg)
{
    struct helper_start *own = arg, start = *own;
    atomic_store(&helper_slots()[own - starts], (int32_t)syscall(SYS_gettid));
    return start.main(start.arg);
}

static bool start_in(int slot, size_t stack_bytes)
{
    sigset_t before;
    pthread_attr_t attributes;
    pthread_t thread;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_setstacksize(&attributes, stack_bytes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    tmk_signals_hold(&before);
    int rc = pthread_create(&thread, &attributes, run_helper, &starts[slot]);
    tmk_signals_release(&before);
    pthread_attr_destroy(&attributes);
    errno = rc ? rc : errno;
    return rc == 0;
}

bool tmk_helper_start(void *(*main)(void *arg), void *arg, size_t stack_bytes)
{
    if (!tmk_seal_enter())
        return false;
    int slot = take_slot();
    bool is_started = false;
    errno = EAGAIN;
    if (slot >= 0) {
        starts[slot] = (struct helper_start){main, arg};
        is_started = start_in(slot, stack_bytes);
        if (!is_started)
            atomic_store(&helper_slots()[slot], FREE);
    }
    tmk_seal_leave();
    return is_started;
}

void tmk_helper_adopt(void)
{
    int slot = take_slot();
    if (slot >= 0)
        atomic_store(&helper_slots()[slot], (int32_t)syscall(SYS_gettid));
}

bool tmk_helper_wait(uint64_t end_ns)
{
    static _Atomic uint32_t never;
    int32_t self = (int32_t)syscall(SYS_gettid);
    for (int i = 0; i < TMK_MOST_HELPERS; i++) {
        for (int32_t thread;
             (thread = atomic_load(&helper_slots()[i])) != self && !is_thread_gone(thread);) {
            if (tmk_clock_monotonic_ns() >= end_ns)
                return false;
            tmk_futex_wait_while(&never, 0, 200000);
        }
    }
    return true;
}
