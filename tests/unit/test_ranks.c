/* SPDX-License-Identifier: MIT */
/* Which ranks a list such as TIDEMARK_RANKS names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record/identity/identity.h"

static void test_listed(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        int64_t rank;
        bool included;
    } cases[] = {
        {"0", 0, true},     {"0", 1, false},     {"0,8", 8, true},        {"0,8", 80, false},
        {"3-5", 2, false},  {"3-5", 3, true},    {"3-5", 5, true},        {"3-5", 6, false},
        {"1,3-5", 4, true}, {"1,3-5", 2, false}, {"7,0-2,9", 9, true},    {"7,0-2,9", 8, false},
        {"5-3", 4, false},  {"12", 1, false},    {"999999999", 1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(tmk_ranks_include(cases[i].list, cases[i].rank), cases[i].included);
}

/* No list, no rank, or nonsense: watched. */
static void test_in_doubt(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",   "x",   "1,",  ",1",        "1-",
                                        "-1", "1;2", "1 2", "9999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_true(tmk_ranks_include(wrong[i], 7));
    assert_true(tmk_ranks_include("0,1", -1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listed),
        cmocka_unit_test(test_in_doubt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
