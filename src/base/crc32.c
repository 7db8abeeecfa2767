/* SPDX-License-Identifier: MIT */
/* base/crc32.c - CRC-32 by folding where the processor multiplies without carries (x86-64:
 * PCLMULQDQ, over 10 GB/s), otherwise and for short texts by slicing by eight: eight table look-ups
 * for eight bytes, about 2 GB/s.
 *
 * Folding: a checksum is the remainder of the bytes, taken as a polynomial, by P. 128 bits that lie
 * D bits before the end may be replaced there by any multiple of x^D that leaves the same
 * remainder, so sixteen bytes are multiplied by (x^D mod P) and added to the sixteen that lie D
 * bits further on. Four lanes of sixteen bytes go on by 64 at a time, then fold into one; what is
 * left of the bytes, and the sixteen that stand for all before, go through the tables.
 *
 * The tables are made on first use. Two threads that make them at once write the same numbers, and
 * `ready` is set after the last of them, so no lock is needed. zlib would do as well, but no
 * foreign library is linked into the watched process. */
#include "base/crc32.h"

#include <stdatomic.h>
#include <stdbool.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/bytes.h"

static uint32_t tables[8][256];
static atomic_bool ready;

static void make_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++)
            c = (c >> 1) ^ (0xedb88320u & (0u - (c & 1)));
        tables[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int k = 1; k < 8; k++)
            tables[k][i] = (tables[k - 1][i] >> 8) ^ tables[0][tables[k - 1][i] & 0xff];
    atomic_store_explicit(&ready, true, memory_order_release);
}

/* Computes the CRC by the tables, without the inversions at both ends. */
static uint32_t by_tables(uint32_t crc, const uint8_t *at, size_t n)
{
    for (; n >= 8; n -= 8, at += 8) {
        uint64_t word = tmk_load_u64(at) ^ crc;
        crc = tables[7][word & 0xff] ^ tables[6][(word >> 8) & 0xff] ^
              tables[5][(word >> 16) & 0xff] ^ tables[4][(word >> 24) & 0xff] ^
              tables[3][(word >> 32) & 0xff] ^ tables[2][(word >> 40) & 0xff] ^
              tables[1][(word >> 48) & 0xff] ^ tables[0][word >> 56];
    }
    for (; n > 0; n--, at++)
        crc = (crc >> 8) ^ tables[0][(crc ^ *at) & 0xff];
    return crc;
}

#if defined(__x86_64__)

#define FOLD_MIN ((size_t)64)

/* x^(D+32) and x^(D-32) mod P with their bits reversed, shifted left by one: what a product of
 * reversed numbers needs. D is 512 for a step of 64 bytes, 128 for one of 16. */
#define X_544 0x154442bd4
#define X_480 0x1c6e41596
#define X_160 0x1751997d0
#define X_96 0x0ccaa009e

__attribute__((target("pclmul,sse4.1"))) static inline __m128i fold(__m128i lane, __m128i by,
                                                                    __m128i next)
{
    __m128i low = _mm_clmulepi64_si128(lane, by, 0x00);
    __m128i high = _mm_clmulepi64_si128(lane, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* Computes the same as by_tables(), for FOLD_MIN bytes or more. */
__attribute__((target("pclmul,sse4.1"))) static uint32_t by_folding(uint32_t crc, const uint8_t *at,
                                                                    size_t n)
{
    const __m128i by_64 = _mm_set_epi64x(X_480, X_544), by_16 = _mm_set_epi64x(X_96, X_160);
    __m128i lanes[4];
    for (int i = 0; i < 4; i++)
        lanes[i] = _mm_loadu_si128((const __m128i *)at + i);
    lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128((int)crc));
    for (at += 64, n -= 64; n >= 64; at += 64, n -= 64)
        for (int i = 0; i < 4; i++)
            lanes[i] = fold(lanes[i], by_64, _mm_loadu_si128((const __m128i *)at + i));
    __m128i all = lanes[0];
    for (int i = 1; i < 4; i++)
        all = fold(all, by_16, lanes[i]);
    for (; n >= 16; at += 16, n -= 16)
        all = fold(all, by_16, _mm_loadu_si128((const __m128i *)at));
    uint8_t bytes[16];
    _mm_storeu_si128((__m128i *)bytes, all);
    return by_tables(by_tables(0, bytes, sizeof bytes), at, n);
}

static bool can_fold(void)
{
    return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

#else

#define FOLD_MIN SIZE_MAX

static uint32_t by_folding(uint32_t crc, const uint8_t *at, size_t n)
{
    return by_tables(crc, at, n);
}

static bool can_fold(void)
{
    return false;
}

#endif

uint32_t tmk_crc32(uint32_t crc, const void *bytes, size_t n)
{
    if (!atomic_load_explicit(&ready, memory_order_acquire))
        make_tables();
    if (n >= FOLD_MIN && can_fold())
        return ~by_folding(~crc, bytes, n);
    return ~by_tables(~crc, bytes, n);
}
