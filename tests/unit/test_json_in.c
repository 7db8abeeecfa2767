/* SPDX-License-Identifier: MIT */
/* Strict JSON: what is taken, what is refused, and that nesting has an end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kit/arena.h"
#include "kit/json_in.h"

static const char *skip_all(const char *text, size_t n)
{
    struct tmk_arena arena = {0};
    struct tmk_json_in j;
    tmk_json_in_init(&j, text, n, &arena);
    tmk_json_in_skip(&j);
    tmk_json_in_end(&j);
    tmk_arena_fini(&arena);
    return j.problem;
}

static void test_good(void **state)
{
    static const char *const good[] = {
        "{}",
        "[]",
        "null",
        " true ",
        "0",
        "-0.5e+10",
        "1E5",
        "\"\"",
        "[1,2,[3,{\"a\":[]}]]",
        "{\"a\" : {\"b\":[false, null]}, \"c\":\"\\u00e4\\ud83d\\ude00\\n\\/\"}",
        "[[[[]]],{}]",
    };
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (skip_all(good[i], strlen(good[i])))
            fail_msg("%s: %s", good[i], skip_all(good[i], strlen(good[i])));
}

static double read_double(const char *text, const char **ret_problem)
{
    struct tmk_arena arena = {0};
    struct tmk_json_in j;
    tmk_json_in_init(&j, text, strlen(text), &arena);
    double value = tmk_json_in_double(&j);
    tmk_json_in_end(&j);
    tmk_arena_fini(&arena);
    *ret_problem = j.problem;
    return value;
}

static void test_doubles(void **state)
{
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0", 0}, {"-0.5e+1", -5}, {" 1700000000.125 ", 1700000000.125}, {"1E5", 1e5}};
    static const char *const bad[] = {"",      "-",    "1.",  "01",  "+1",  ".5", "1e",
                                      "\"1\"", "null", "0x1", "nan", "1 2", "[1]"};
    const char *problem;
    char digits[600];
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(read_double(good[i].text, &problem) == good[i].value);
        assert_null(problem);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        (void)read_double(bad[i], &problem);
        if (!problem)
            fail_msg("%s was taken", bad[i]);
    }
    memset(digits, '1', sizeof digits - 1);
    digits[sizeof digits - 1] = '\0';
    (void)read_double(digits, &problem);
    assert_string_equal(problem, "a number has too many digits");
    digits[400] = '\0';
    assert_true(read_double(digits, &problem) > 1e308);
    assert_null(problem);
}

static void test_bad(void **state)
{
    static const char *const bad[] = {
        "",        "{",           "[1,]", "{\"a\":1,}", "{a:1}", "[1 2]",       "01",
        "1.",      "-",           "+1",   "tru",        "\"",    "\"\\x\"",     "\"\\u12\"",
        "{\"a\"}", "[}",          "{]",   "1 2",        "'a'",   "\"\\ud800\"", "\"\\udc00\"",
        "\"\n\"",  "\"\\u0000\"", "[1]]", "{,}",        "[,]",   "nan",         "\"\\",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!skip_all(bad[i], strlen(bad[i])))
            fail_msg("%s was taken", bad[i]);
    assert_non_null(skip_all("[\0]", 3));
}

static void test_depth(void **state)
{
    char deep[2 * TMK_JSON_IN_DEPTH + 2];
    (void)state;
    memset(deep, '[', TMK_JSON_IN_DEPTH);
    memset(deep + TMK_JSON_IN_DEPTH, ']', TMK_JSON_IN_DEPTH);
    assert_null(skip_all(deep, 2 * TMK_JSON_IN_DEPTH));
    memset(deep, '[', TMK_JSON_IN_DEPTH + 1);
    memset(deep + TMK_JSON_IN_DEPTH + 1, ']', TMK_JSON_IN_DEPTH + 1);
    assert_non_null(skip_all(deep, sizeof deep));
}

static void test_values(void **state)
{
    static const char text[] = "{\"n\": 18446744073709551615, \"t\": \"a\\u00e4\\ud83d\\ude00\", "
                               "\"l\": [1, 2], \"big\": 18446744073709551616}";
    struct tmk_arena arena = {0};
    struct tmk_json_in j;
    (void)state;
    tmk_json_in_init(&j, text, strlen(text), &arena);
    tmk_json_in_object(&j);
    assert_string_equal(tmk_json_in_key(&j), "n");
    assert_true(tmk_json_in_u64(&j) == UINT64_MAX);
    assert_string_equal(tmk_json_in_key(&j), "t");
    assert_string_equal(tmk_json_in_text(&j), "a\xc3\xa4\xf0\x9f\x98\x80");
    assert_string_equal(tmk_json_in_key(&j), "l");
    tmk_json_in_array(&j);
    for (uint64_t i = 1; i <= 2; i++) {
        assert_true(tmk_json_in_item(&j));
        assert_int_equal(tmk_json_in_u64(&j), i);
    }
    assert_false(tmk_json_in_item(&j));
    assert_string_equal(tmk_json_in_key(&j), "big");
    assert_null(j.problem);
    assert_int_equal(tmk_json_in_u64(&j), 0);
    assert_string_equal(j.problem, "a number is larger than 64 bits");
    assert_null(tmk_json_in_key(&j)); /* the problem stays */
    tmk_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),  cmocka_unit_test(test_doubles), cmocka_unit_test(test_bad),
        cmocka_unit_test(test_depth), cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
