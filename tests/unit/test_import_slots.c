/* SPDX-License-Identifier: MIT */
/* A word that the loader has made read-only, written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "record/loader/import_slots.h"

static int answer(void)
{
    return 1;
}

static int other_answer(void)
{
    return 2;
}

/* Relocated, and so in .data.rel.ro. */
static int (*const table[])(void) = {answer};

/* Read anew each time, for all that the compiler knows of it. */
static int ask(const volatile uintptr_t *word)
{
    return ((int (*)(void)) * word)();
}

static bool is_writable(const void *address)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    uintptr_t start, end;
    char write = '?';
    assert_non_null(maps);
    while (fscanf(maps, "%lx-%lx %*c%c%*[^\n]", &start, &end, &write) == 3)
        if ((uintptr_t)address >= start && (uintptr_t)address < end)
            break;
    fclose(maps);
    return write == 'w';
}

static void test_written(void **state)
{
    uintptr_t *word = (uintptr_t *)&table[0], theirs = (uintptr_t)answer;
    uintptr_t ours = (uintptr_t)other_answer;
    (void)state;
    assert_false(is_writable(word));
    assert_int_equal(ask(word), 1);
    assert_true(tmk_import_word_write(word, ours, false));
    assert_int_equal(ask(word), 2);
    assert_false(is_writable(word));
    for (unsigned i = 0; i < 3; i++) { /* to and fro, as measurements do */
        assert_true(tmk_import_word_write(word, theirs, true));
        assert_int_equal(ask(word), 1);
        assert_true(is_writable(word));
        assert_true(tmk_import_word_write(word, ours, true));
        assert_int_equal(ask(word), 2);
    }
    assert_true(tmk_import_word_write(word, theirs, false));
    assert_int_equal(ask(word), 1);
    assert_false(is_writable(word));
}

static void test_of_no_module(void **state)
{
    uintptr_t here = 5;
    (void)state;
    assert_false(tmk_import_word_write(&here, 6, false));
    assert_int_equal(here, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written),
        cmocka_unit_test(test_of_no_module),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
