/* SPDX-License-Identifier: MIT */
/* Sizes, times and counts: what people read and what they type. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "kit/amount.h"

static void test_texts(void **state)
{
    (void)state;
    static const struct {
        const char *(*text)(uint64_t, char *);
        uint64_t value;
        const char *expected;
    } cases[] = {
        {tmk_size_text, 0, "0 B"},
        {tmk_size_text, 1023, "1023 B"},
        {tmk_size_text, 1024, "1.0 KiB"},
        {tmk_size_text, 1536, "1.5 KiB"},
        {tmk_size_text, 7344780, "7.0 MiB"},
        {tmk_size_text, (uint64_t)80 << 30, "80.00 GiB"},
        {tmk_size_text, UINT64_MAX, "16.00 EiB"},
        {tmk_time_text, 0, "0 s"},
        {tmk_time_text, 850, "850 ns"},
        {tmk_time_text, 12340, "12.3 us"},
        {tmk_time_text, 107910000, "107.91 ms"},
        {tmk_time_text, 1234000000, "1.234 s"},
        {tmk_time_text, 119999000000, "119.999 s"},
        {tmk_time_text, 125000000000, "2 min 05 s"},
        {tmk_time_text, 10920000000000, "3 h 02 min"},
        {tmk_count_text, 0, "0"},
        {tmk_count_text, 999, "999"},
        {tmk_count_text, 1000, "1,000"},
        {tmk_count_text, 1234567, "1,234,567"},
        {tmk_count_text, UINT64_MAX, "18,446,744,073,709,551,615"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char buffer[TMK_AMOUNT_BYTES];
        assert_string_equal(cases[i].text(cases[i].value, buffer), cases[i].expected);
    }
}

static void test_shares(void **state)
{
    (void)state;
    char b[TMK_AMOUNT_BYTES];
    assert_string_equal(tmk_percent_text(1, 2, b), "50 %");
    assert_string_equal(tmk_percent_text(1, 1000, b), "<1 %");
    assert_string_equal(tmk_percent_text(0, 1000, b), "0 %");
    assert_string_equal(tmk_percent_text(0, 0, b), "-");
}

static void test_size_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"0", 0},
        {"4096", 4096},
        {"4096B", 4096},
        {"1K", 1024},
        {"1kb", 1024},
        {"512MiB", 512u << 20},
        {"512 MiB", 512u << 20},
        {"1.5G", 3ull << 29},
        {"2GiB", 2ull << 30},
        {"2gb", 2ull << 30},
        {"1T", 1ull << 40},
        {"0.5k", 512},
    };
    static const char *const bad[] = {"",
                                      "-1",
                                      "+1",
                                      "MiB",
                                      "1.",
                                      "1.M",
                                      ".5M",
                                      "1 Mi B",
                                      "1X",
                                      "1e3",
                                      "0x10",
                                      "1MiBx",
                                      "99999999999999999999",
                                      "20000000000G"};
    uint64_t bytes = 7;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(tmk_size_parse(bad[i], &bytes), TMK_EINVAL);
        assert_int_equal(bytes, 7);
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(tmk_size_parse(good[i].text, &bytes), 0);
        assert_int_equal(bytes, good[i].bytes);
    }
}

/* A number alone is seconds; what is too long is no time, however it begins. */
static void test_seconds_parse(void **state)
{
    (void)state;
    uint64_t ns = 5;
    assert_int_equal(tmk_seconds_parse("12", &ns), 0);
    assert_int_equal(ns, 12000000000);
    assert_int_equal(tmk_seconds_parse("250ms", &ns), 0);
    assert_int_equal(ns, 250000000);
    assert_int_equal(tmk_seconds_parse("1e3", &ns), TMK_EINVAL);
    assert_int_equal(tmk_seconds_parse("", &ns), TMK_EINVAL);
    assert_int_equal(tmk_seconds_parse("0.1000000000000000000000000000 of anything", &ns),
                     TMK_EINVAL);
    assert_int_equal(tmk_seconds_parse("0.10000000000000000000000000000000000000000000000000000"
                                       "000000000000 of anything",
                                       &ns),
                     TMK_EINVAL);
    assert_int_equal(ns, 250000000);
}

static void test_time_parse(void **state)
{
    (void)state;
    uint64_t ns = 7;
    assert_int_equal(tmk_time_parse("12", &ns), TMK_EINVAL); /* of what? */
    assert_int_equal(tmk_time_parse("s", &ns), TMK_EINVAL);
    assert_int_equal(ns, 7);
    assert_int_equal(tmk_time_parse("1.5s", &ns), 0);
    assert_int_equal(ns, 1500000000);
    assert_int_equal(tmk_time_parse("300ms", &ns), 0);
    assert_int_equal(ns, 300000000);
    assert_int_equal(tmk_time_parse("42ns", &ns), 0);
    assert_int_equal(ns, 42);
    assert_int_equal(tmk_time_parse("10m", &ns), 0);
    assert_int_equal(ns, 600000000000u);
    assert_int_equal(tmk_time_parse("2min", &ns), 0);
    assert_int_equal(ns, 120000000000);
}

static void test_integer_parse(void **state)
{
    (void)state;
    int64_t n = 7;
    static const char *const bad[] = {"", "-", "+", "1x", " 1", "1 ", "0x1", "9223372036854775808"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(tmk_integer_parse(bad[i], &n), TMK_EINVAL);
    assert_int_equal(n, 7);
    assert_int_equal(tmk_integer_parse("-12", &n), 0);
    assert_int_equal(n, -12);
    assert_int_equal(tmk_integer_parse("9223372036854775807", &n), 0);
    assert_true(n == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),         cmocka_unit_test(test_shares),
        cmocka_unit_test(test_size_parse),    cmocka_unit_test(test_time_parse),
        cmocka_unit_test(test_seconds_parse), cmocka_unit_test(test_integer_parse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
