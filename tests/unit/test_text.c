/* SPDX-License-Identifier: MIT */
/* test_text.c - text without stdio: what it says, and that it stays in its buffer. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

/* The subset of printf says what printf says. */
static void test_formats(void **unused)
{
    (void)unused;
    static const uint64_t numbers[] = {0,           1,           9,          10,
                                       4294967295u, 4294967296u, UINT64_MAX, 1ull << 63};
    char buffer[256], wanted[256];
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        unsigned long long v = numbers[i];
        struct tmk_text t;
        tmk_text_init(&t, buffer, sizeof buffer);
        tmk_text_add(&t, "%llu %lld %llx %u %d %zu %c|%s%%", v, (long long)v, v, (unsigned)v,
                     (int)v, (size_t)v, 'x', "text");
        snprintf(wanted, sizeof wanted, "%llu %lld %llx %u %d %zu %c|%s%%", v, (long long)v, v,
                 (unsigned)v, (int)v, (size_t)v, 'x', "text");
        assert_string_equal(buffer, wanted);
        assert_int_equal(t.length, strlen(wanted));
        assert_false(t.cut);
    }
}

static void test_numbers(void **unused)
{
    (void)unused;
    char buffer[128];
    struct tmk_text t;
    tmk_text_init(&t, buffer, sizeof buffer);
    tmk_text_padded(&t, 7, 3);
    tmk_text_char(&t, ' ');
    tmk_text_padded(&t, 12345, 3);
    tmk_text_char(&t, ' ');
    tmk_text_i64(&t, INT64_MIN);
    tmk_text_char(&t, ' ');
    tmk_text_hex(&t, 0xdeadbeef);
    assert_string_equal(buffer, "007 12345 -9223372036854775808 deadbeef");
}

/* In every size of buffer: a beginning of the text, a zero at its end, nothing behind. */
static void test_cut(void **unused)
{
    (void)unused;
    static const char whole[] = "abc 1234567890 hello";
    for (size_t size = 1; size <= sizeof whole + 2; size++) {
        char buffer[64];
        struct tmk_text t;
        memset(buffer, '#', sizeof buffer);
        tmk_text_init(&t, buffer, size);
        tmk_text_add(&t, "abc %llu %s", 1234567890ull, "hello");
        size_t n = size - 1 < strlen(whole) ? size - 1 : strlen(whole);
        assert_int_equal(t.length, n);
        assert_memory_equal(buffer, whole, n);
        assert_int_equal(buffer[n], 0);
        assert_int_equal(t.cut, n < strlen(whole));
        for (size_t i = size; i < sizeof buffer; i++)
            assert_int_equal(buffer[i], '#');
        tmk_text_string(&t, "more"); /* a text that was cut takes no more */
        if (n < strlen(whole))
            assert_int_equal(strlen(buffer), n);
    }
}

static void test_bytes(void **unused)
{
    (void)unused;
    char buffer[16];
    struct tmk_text t;
    tmk_text_init(&t, buffer, sizeof buffer);
    assert_string_equal(buffer, "");
    tmk_text_bytes(&t, "a\0b", 3);
    tmk_text_bytes(&t, "", 0);
    assert_int_equal(t.length, 3);
    assert_memory_equal(buffer, "a\0b\0", 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
