/* SPDX-License-Identifier: MIT */
/* Line tables by hand and by chance. That they mean what the interpreter means is shown by
 * tests/fault/test_python_lines.py; here: the odd ends, and that no bytes do harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "trace/layout.h"
#include "trace/pylines.h"
#include "trace_kit.h"

/* The lines of instructions at 0, 2, 4 ... are those given. */
static void check(uint32_t layout, uint32_t first_line, const uint8_t *table, size_t n_table,
                  const uint32_t *lines, size_t n_lines)
{
    struct tmk_pylines p;
    tmk_pylines_init(&p, layout, first_line, table, n_table);
    for (size_t i = 0; i < n_lines; i++)
        assert_int_equal(tmk_pylines_at(&p, 2 * i), lines[i]);
}

#define CHECK(layout, first_line, table, ...)                                                      \
    check(layout, first_line, (const uint8_t *)(table), sizeof(table) - 1,                         \
          (const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void test_39(void **unused)
{
    (void)unused;
    CHECK(39, 10, "\2\1\4\2\2\xff", 10, 11, 11, 13, 12, 12);
    CHECK(39, 10, "\0\5\2\1", 15, 16, 16);   /* a change before the first instruction */
    CHECK(39, 10, "\xff\0\1\3", 10, 10, 10); /* far away */
    CHECK(39, 10, "\2\x7f\0\x7f", 10, 264);  /* two steps to one line */
    CHECK(39, 10, "", 10, 10);               /* none: all on the first line */
    CHECK(39, 10, "\2\1\2", 10, 11, 11, 11); /* half a pair */
    CHECK(39, 10, "\0\x80\2\x7f", 10, 9, 9); /* a line before the first of the file */
}

static void test_310(void **unused)
{
    (void)unused;
    CHECK(310, 10, "\4\0\2\1\2\x80\2\1", 10, 10, 11, 0, 12);
    CHECK(310, 10, "\0\5\2\1", 16);                 /* an empty range counts */
    CHECK(310, 10, "\2\1", 11, 10, 10);             /* too short: the first line */
    CHECK(310, 10, "\2\1\2", 11, 10);               /* half a pair */
    CHECK(310, 10, "\2\x81\2\x7f\2\1", 10, 10, 11); /* 10 - 127: there is no such line */
    CHECK(310, 10, "", 10);
}

static void test_311(void **unused)
{
    (void)unused;
    /* Two instructions as they are, one on the next line, one without, one 3 further. */
    CHECK(311, 10, "\x81\x10\xd8\1\2\xf8\xe8\6", 10, 10, 11, 0, 14);
    CHECK(311, 100, "\xe0\1\2\xe8\x43\1", 102, 102 - 33); /* 2 on; six bits and then more: -33 */
    CHECK(311, 40, "\xf0\3\0\1\1\xf0\2\0\1\1", 39, 40);
    CHECK(311, 1, "\xf0\3\0\1\1\x80\1", 0, 0);      /* a module's first instruction has line 0 */
    CHECK(311, 10, "\x80\1\x10\x80\1", 10, 10, 10); /* no entry begins there */
    CHECK(311, 10, "\xd8\1\2\xd8\1", 11, 10);       /* cut */
    CHECK(311, 10, "\xd8\1\2\xd8\1\xd8\1\2", 11, 10, 10); /* one byte is missing */
    CHECK(311, 10, "\xe8\x42\x40\x40\x40\x40\x40\0", 10); /* a number too long */
    CHECK(311, 10, "\xe8\x7e\x7f\x7f\x7f\x7f\3", 10);     /* a line too far */
    CHECK(311, 10, "", 10);
}

static void test_runs(void **unused)
{
    (void)unused;
    /* Two instructions on the first line, one on the next, one without, two 3 further, one before.
     */
    CHECK(TMK_PY_LINES_RUNS, 10, "\x07\0\1\0\x07\6\2", 10, 10, 11, 0, 14, 14, 13, 10);
    CHECK(TMK_PY_LINES_RUNS, 10, "\x85\1", 11, 11);    /* a varint: 34 instructions */
    CHECK(TMK_PY_LINES_RUNS, 10, "\1\3", 11, 10);      /* its difference is missing */
    CHECK(TMK_PY_LINES_RUNS, 10, "\1\x80", 11, 10);    /* cut */
    CHECK(TMK_PY_LINES_RUNS, 5, "\3\x0b\3\x0c", 5, 5); /* 5 - 6: there is no such line */
    CHECK(TMK_PY_LINES_RUNS, 5, "\3\xff\xff\xff\xff\x7f\1", 5, 5); /* a line too far */
    CHECK(TMK_PY_LINES_RUNS, 5, "\xfd\xff\xff\x0f\1", 6);
    CHECK(TMK_PY_LINES_RUNS, 5, "\xfd\xff\xff\x7f\1", 5); /* too many instructions */
    CHECK(TMK_PY_LINES_RUNS, 10, "", 10);
}

static void check_made(const char *entries, size_t n_entries, const char *runs, size_t n_runs)
{
    uint8_t room[100];
    struct tmk_sink out = tmk_sink_of(room, sizeof room);
    assert_true(tmk_pylines_runs((const uint8_t *)entries, n_entries, &out));
    assert_int_equal(tmk_sink_length(&out), n_runs);
    assert_memory_equal(room, runs, n_runs);
}

static void test_making_runs(void **unused)
{
    (void)unused;
    uint8_t room[40];
    struct tmk_sink out = tmk_sink_of(room, sizeof room), small = tmk_sink_of(room, 1);
    check_made("", 0, "", 0);
    check_made("\x81\x10\x82\x10", 4, "\x13\0", 2);       /* one line: five instructions */
    check_made("\xd8\1\2\x80\1\xf8\xf9", 7, "\5\x08", 2); /* the next line; none, and none */
    check_made("\xe8\3\xe0\1\2\xf8\x80\1", 8, "\2\3\4\0\3\0", 6);         /* -1, +2, none, +0 */
    assert_false(tmk_pylines_runs((const uint8_t *)"\1\x80\1", 3, &out)); /* not from the start */
    assert_false(tmk_pylines_runs((const uint8_t *)"\x80\1\xd8\1", 4, &out)); /* cut */
    assert_false(tmk_pylines_runs((const uint8_t *)"\xd8\1\2\xd9\1\2", 6, &small));
}

static void test_unknown_layout(void **unused)
{
    (void)unused;
    CHECK(0, 10, "\2\1\2\1", 10, 10);
    CHECK(312, 10, "\2\1\2\1", 10, 10);
}

/* Any bytes: no read outside them, and a walk says what a fresh look says. */
static void test_any_bytes(void **unused)
{
    (void)unused;
    static const uint32_t layouts[] = {39, 310, 311, TMK_PY_LINES_RUNS};
    struct kit_random random = {9};
    for (int round = 0; round < 3000; round++) {
        size_t n = (size_t)kit_random_below(&random, 40);
        uint8_t *table = malloc(n + !n); /* of its size: ASan sees a byte too many */
        bool heads = kit_random_below(&random, 2);
        for (size_t i = 0; i < n; i++)
            table[i] = (uint8_t)(kit_random_below(&random, 256) & (heads && i % 3 ? 63 : 255));
        uint32_t layout = layouts[round % 4], first = (uint32_t)kit_random_next(&random);
        struct tmk_pylines walk;
        tmk_pylines_init(&walk, layout, first, table, n);
        for (uint64_t offset = 0; offset < 300; offset += 1 + kit_random_below(&random, 9)) {
            struct tmk_pylines fresh;
            tmk_pylines_init(&fresh, layout, first, table, n);
            assert_int_equal(tmk_pylines_at(&walk, offset), tmk_pylines_at(&fresh, offset));
        }
        (void)tmk_pylines_at(&walk, UINT64_MAX);
        free(table);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_39),          cmocka_unit_test(test_310),
        cmocka_unit_test(test_311),         cmocka_unit_test(test_unknown_layout),
        cmocka_unit_test(test_any_bytes),   cmocka_unit_test(test_runs),
        cmocka_unit_test(test_making_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
