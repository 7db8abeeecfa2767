/* SPDX-License-Identifier: MIT */
/* kit/seeded_hash.h - hashes for tables with keys that a stranger chose.
 *
 * With base/hash.h anybody can find a hundred thousand keys that fall into one slot, and each
 * look-up then walks through all of them. These hashes mix in a number that every process draws
 * anew. Nothing that is written or printed may depend on such a hash. */
#ifndef TMK_KIT_SEEDED_HASH_H
#define TMK_KIT_SEEDED_HASH_H

#include <stdatomic.h>

#include "base/bytes.h"
#include "base/hash.h"

extern _Atomic uint64_t tmk_hash_seed_value; /* 0: not drawn yet */
uint64_t tmk_hash_seed_draw(void);

static inline uint64_t tmk_hash_seed(void)
{
    uint64_t seed = atomic_load_explicit(&tmk_hash_seed_value, memory_order_relaxed);
    return __builtin_expect(seed != 0, 1) ? seed : tmk_hash_seed_draw();
}

static inline uint64_t tmk_hash_seeded_u64(uint64_t x)
{
    return tmk_hash_mix(tmk_hash_seed(), x);
}

static inline uint64_t tmk_hash_seeded_bytes(const void *bytes, size_t n)
{
    const uint8_t *at = bytes;
    uint64_t seed = tmk_hash_seed(), h = tmk_hash_u64(n ^ seed), tail = 0;
    for (; n >= 8; n -= 8, at += 8)
        h = tmk_hash_fold(h ^ seed, tmk_load_u64(at) ^ seed);
    for (size_t i = 0; i < n; i++)
        tail |= (uint64_t)at[i] << (8 * i);
    return tmk_hash_u64(tmk_hash_fold(h ^ seed, tail ^ seed));
}

#endif
