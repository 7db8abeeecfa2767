/* SPDX-License-Identifier: MIT */
/* base/clock.c - see clock.h. */
#include "base/clock.h"

#include <stdatomic.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#if defined(__x86_64__)
static bool has_invariant_tsc(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & (1u << 8));
}
#endif

bool tmk_clock_has_counter(void)
{
#if defined(__x86_64__)
    static _Atomic int known; /* 1: no, 2: yes. Asking takes some 30 µs in a virtual machine */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (answer == 0) {
        answer = has_invariant_tsc() ? 2 : 1;
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return answer == 2;
#elif defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

const char *tmk_clock_name(void)
{
    if (!tmk_clock_has_counter())
        return "monotonic";
#if defined(__x86_64__)
    return "tsc";
#else
    return "cntvct";
#endif
}

struct tmk_clock_reading tmk_clock_read(void)
{
    bool counter = tmk_clock_has_counter();
    struct tmk_clock_reading best = {0};
    uint64_t best_gap = UINT64_MAX;
    for (int try = 0; try < 3; try++) {
        uint64_t before = tmk_clock_ticks(counter);
        uint64_t ns = tmk_clock_monotonic_ns();
        uint64_t after = tmk_clock_ticks(counter);
        if (after - before < best_gap) {
            best_gap = after - before;
            best = (struct tmk_clock_reading){.ticks = before + best_gap / 2, .ns = ns};
        }
    }
    return best;
}
