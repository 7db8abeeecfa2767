/* SPDX-License-Identifier: MIT */
/* base/clock.h - the cheap clock of the hot path, and readings that relate it to CLOCK_MONOTONIC.
 *
 * Ticks come from the cycle counter if it counts at one rate on all cores (x86-64 with an invariant
 * TSC, aarch64 always), else from CLOCK_MONOTONIC itself. A reading pairs both, so that ticks
 * between two readings turn into nanoseconds by a straight line, without knowing the rate. */
#ifndef TMK_BASE_CLOCK_H
#define TMK_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t tmk_clock_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint64_t tmk_clock_monotonic_ns(void)
{
    return tmk_clock_ns(CLOCK_MONOTONIC);
}

/* Whether the cycle counter can be used. It is constant for a machine. */
bool tmk_clock_has_counter(void);

/* The name of the clock: "tsc", "cntvct" or "monotonic". */
const char *tmk_clock_name(void);

static inline uint64_t tmk_clock_counter(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t v;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
    return v;
#else
    return tmk_clock_monotonic_ns();
#endif
}

/* The number of ticks by which an event is later than the one that lent it its timestamp. It is
 * more than a nanosecond (counters run at 8 GHz or less) and less than the time between two events
 * of a thread. */
#if defined(__x86_64__)
enum { TMK_CLOCK_LITTLE = 8 };
#else
enum { TMK_CLOCK_LITTLE = 2 };
#endif

/* Ticks now; `counter` is tmk_clock_has_counter(), looked up once by the caller. */
static inline uint64_t tmk_clock_ticks(bool counter)
{
    return __builtin_expect(counter, 1) ? tmk_clock_counter() : tmk_clock_monotonic_ns();
}

/* Both clocks at one moment. */
struct tmk_clock_reading {
    uint64_t ticks;
    uint64_t ns; /* CLOCK_MONOTONIC */
};

/* Reads both clocks a few times and returns the pair with the least time in between. */
struct tmk_clock_reading tmk_clock_read(void);

#endif
