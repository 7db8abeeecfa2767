/* SPDX-License-Identifier: MIT */
/* kit/seeded_hash.c - see seeded_hash.h. */
#include "kit/seeded_hash.h"

#include <sys/random.h>

#include "base/clock.h"

_Atomic uint64_t tmk_hash_seed_value;

/* When several threads draw at once, the first one's number counts. */
uint64_t tmk_hash_seed_draw(void)
{
    uint64_t seed = 0, before = 0;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
        seed = tmk_hash_u64(tmk_clock_monotonic_ns());
    seed |= 1; /* never "not drawn" */
    return atomic_compare_exchange_strong(&tmk_hash_seed_value, &before, seed) ? seed : before;
}
