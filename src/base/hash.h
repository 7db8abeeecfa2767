/* SPDX-License-Identifier: MIT */
/* base/hash.h - the two hashes of the project: one for a number, one for a text. Tables that must
 * resist flooding use kit/seeded_hash.h instead. */
#ifndef TMK_BASE_HASH_H
#define TMK_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* Mixes one 64-bit number: every input bit reaches the high and the low half. */
static inline uint64_t tmk_hash_u64(uint64_t x)
{
    x ^= x >> 32;
    x *= 0x9e3779b97f4a7c15u;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9u;
    return x ^ (x >> 32);
}

/* Fold b into a running hash a. */
static inline uint64_t tmk_hash_mix(uint64_t a, uint64_t b)
{
    return tmk_hash_u64(a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2)));
}

/* Multiply to 128 bits and fold: one step of the text hash, about five cycles for eight bytes. */
static inline uint64_t tmk_hash_fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product =
        (unsigned __int128)(a ^ 0xa0761d6478bd642fu) * (b ^ 0xe7037ed1a0b428dbu);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t tmk_hash_bytes(const void *bytes, size_t n)
{
    const uint8_t *at = bytes;
    uint64_t h = tmk_hash_u64(n);
    for (; n >= 8; n -= 8, at += 8)
        h = tmk_hash_fold(h, tmk_load_u64(at));
    uint64_t tail = 0;
    for (size_t i = 0; i < n; i++)
        tail |= (uint64_t)at[i] << (8 * i);
    return tmk_hash_u64(tmk_hash_fold(h, tail));
}

#endif
