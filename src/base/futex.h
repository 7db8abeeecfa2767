/* SPDX-License-Identifier: MIT */
/* base/futex.h - waits until a word changes, and changes it so that waiting threads wake up.
 *
 * A waiting thread sleeps and does not poll. There is nothing to destroy and nothing that stays
 * locked: the word lies in memory that a fork may copy at any moment. */
#ifndef TMK_BASE_FUTEX_H
#define TMK_BASE_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* Returns false when the word still had that value after limit_ns. */
static inline bool tmk_futex_wait_while(_Atomic uint32_t *word, uint32_t value, uint64_t limit_ns)
{
    uint64_t end = tmk_clock_monotonic_ns() + limit_ns;
    while (atomic_load(word) == value) {
        uint64_t now = tmk_clock_monotonic_ns();
        if (now >= end)
            return false;
        struct timespec left = {.tv_sec = (time_t)((end - now) / 1000000000u),
                                .tv_nsec = (long)((end - now) % 1000000000u)};
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &left, NULL, 0);
    }
    return true;
}

static inline void tmk_futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static inline void tmk_futex_set(_Atomic uint32_t *word, uint32_t value)
{
    atomic_store(word, value);
    tmk_futex_wake(word);
}

#endif
