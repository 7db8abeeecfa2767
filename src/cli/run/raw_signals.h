/* SPDX-License-Identifier: MIT */
/* cli/run/raw_signals.h - all 64 signals, by the system calls themselves. The C library's functions
 * leave out 32 and 33, which it uses between threads; sent by others they would end us. */
#ifndef TMK_CLI_RUN_RAW_SIGNALS_H
#define TMK_CLI_RUN_RAW_SIGNALS_H

#include <signal.h>
#include <stdint.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TMK_N_SIGNALS = 64 };

static inline uint64_t tmk_raw_signal_bit(int number)
{
    return 1ull << (number - 1);
}

/* `how` as for sigprocmask(); returns the mask before. */
static inline uint64_t tmk_raw_signals_mask(int how, uint64_t set)
{
    uint64_t before = 0;
    syscall(SYS_rt_sigprocmask, how, &set, &before, sizeof set);
    return before;
}

/* Returns the signals that have come and wait. */
static inline uint64_t tmk_raw_signals_pending(void)
{
    uint64_t set = 0;
    syscall(SYS_rt_sigpending, &set, sizeof set);
    return set;
}

/* Returns a descriptor that is readable while a signal of `set` waits: a new one for -1, else `fd`.
 */
static inline int tmk_raw_signals_fd(int fd, uint64_t set)
{
    return (int)syscall(SYS_signalfd4, fd, &set, sizeof set, SFD_CLOEXEC);
}

/* Take one signal of `set`, all of which are blocked. Waits at most `limit_ns`; -1: for ever.
 * Returns its number; <0: there was none. */
static inline int tmk_raw_signals_wait(uint64_t set, siginfo_t *ret, long limit_ns)
{
    struct timespec limit = {.tv_nsec = limit_ns};
    return (int)syscall(SYS_rt_sigtimedwait, &set, ret, limit_ns < 0 ? NULL : &limit, sizeof set);
}

#endif
