/* SPDX-License-Identifier: MIT */
/* test_crc32.c - the checksum is zlib's: known values, and a bit-by-bit one beside it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc32.h"
#include "trace_kit.h"

/* As zlib.crc32() of Python gives them. */
static void test_known(void **unused)
{
    (void)unused;
    uint8_t bytes[4096];
    assert_int_equal(tmk_crc32(0, "", 0), 0);
    assert_int_equal(tmk_crc32(0, "a", 1), 0xe8b7be43);
    assert_int_equal(tmk_crc32(0, "123456789", 9), 0xcbf43926);
    assert_int_equal(tmk_crc32(0, "The quick brown fox jumps over the lazy dog", 43), 0x414fa339);
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(tmk_crc32(0, bytes, 4096), 0xc71c0011);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(tmk_crc32(0, bytes, 32), 0xff6cab0b);
    for (int i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    assert_int_equal(tmk_crc32(0, bytes, 256), 0x29058c73);
}

static uint32_t slow_crc(const uint8_t *bytes, size_t n)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

/* Every length up to 200 at every alignment, in one piece and in two. */
static void test_lengths_and_pieces(void **unused)
{
    (void)unused;
    uint8_t bytes[256];
    struct kit_random random = {1};
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)kit_random_next(&random);
    for (size_t start = 0; start < 8; start++) {
        for (size_t n = 0; n <= 200; n++) {
            uint32_t crc = slow_crc(bytes + start, n);
            size_t cut = kit_random_below(&random, n + 1);
            assert_int_equal(tmk_crc32(0, bytes + start, n), crc);
            uint32_t first = tmk_crc32(0, bytes + start, cut);
            assert_int_equal(tmk_crc32(first, bytes + start + cut, n - cut), crc);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_lengths_and_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
