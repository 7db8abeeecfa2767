/* SPDX-License-Identifier: MIT */
/* base/crc32.c - slicing by eight: eight table look-ups for eight bytes, about 2 GB/s.
 *
 * The tables are made on first use. Two threads that make them at once write the same numbers, and
 * `ready` is set after the last of them, so no lock is needed. zlib would do as well, but nothing
 * foreign is linked into the watched process. */
#include "base/crc32.h"

#include <stdatomic.h>
#include <stdbool.h>

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

uint32_t tmk_crc32(uint32_t crc, const void *bytes, size_t n)
{
    if (!atomic_load_explicit(&ready, memory_order_acquire))
        make_tables();
    const uint8_t *at = bytes;
    crc = ~crc;
    for (; n >= 8; n -= 8, at += 8) {
        uint64_t word = tmk_load_u64(at) ^ crc;
        crc = tables[7][word & 0xff] ^ tables[6][(word >> 8) & 0xff] ^
              tables[5][(word >> 16) & 0xff] ^ tables[4][(word >> 24) & 0xff] ^
              tables[3][(word >> 32) & 0xff] ^ tables[2][(word >> 40) & 0xff] ^
              tables[1][(word >> 48) & 0xff] ^ tables[0][word >> 56];
    }
    for (; n > 0; n--, at++)
        crc = (crc >> 8) ^ tables[0][(crc ^ *at) & 0xff];
    return ~crc;
}
