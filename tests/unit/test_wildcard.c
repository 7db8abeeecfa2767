/* SPDX-License-Identifier: MIT */
/* test_wildcard.c - patterns read once match what fnmatch() says. */
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kit/wildcard.h"

enum { N_PAIRS = 200000, LONGEST = 6 };

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

static void make_text(uint32_t *state, const char *letters, char *to)
{
    uint32_t n = next_random(state) % (LONGEST + 1);
    for (; n > 0; n--)
        *to++ = letters[next_random(state) % strlen(letters)];
    *to = '\0';
}

static void test_kinds(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        int kind;
    } cases[] = {
        {"", TMK_WILDCARD_IS},         {"norm", TMK_WILDCARD_IS},
        {"ln_*", TMK_WILDCARD_BEGINS}, {"*_norm", TMK_WILDCARD_ENDS},
        {"*attn*", TMK_WILDCARD_HAS},  {"*", TMK_WILDCARD_ENDS},
        {"**", TMK_WILDCARD_HAS},      {"?*Head", TMK_WILDCARD_OTHER},
        {"a*b", TMK_WILDCARD_OTHER},   {"bn[0-9]*", TMK_WILDCARD_OTHER},
        {"a\\*", TMK_WILDCARD_OTHER},  {"***", TMK_WILDCARD_OTHER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tmk_wildcard w;
        tmk_wildcard_read(&w, cases[i].pattern);
        assert_int_equal(w.kind, cases[i].kind);
    }
}

static void test_as_fnmatch(void **state)
{
    (void)state;
    uint32_t random = 1, n_matches = 0;
    for (int i = 0; i < N_PAIRS; i++) {
        char pattern[LONGEST + 1], text[LONGEST + 1];
        struct tmk_wildcard w;
        make_text(&random, "ab**?[]\\", pattern);
        make_text(&random, "ab.", text);
        tmk_wildcard_read(&w, pattern);
        bool matches = fnmatch(pattern, text, 0) == 0;
        if (tmk_wildcard_matches(&w, text, strlen(text)) != matches)
            fail_msg("'%s' and '%s'", pattern, text);
        n_matches += matches;
    }
    assert_true(n_matches > N_PAIRS / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_as_fnmatch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
