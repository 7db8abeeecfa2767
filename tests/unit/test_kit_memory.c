/* SPDX-License-Identifier: MIT */
/* Growing arrays, arenas and the map of texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "kit/arena.h"
#include "kit/grow.h"
#include "kit/textmap.h"

static void test_grow(void **state)
{
    (void)state;
    uint64_t *items = NULL, room = 0;
    for (uint64_t n = 0; n < 5000; n++) {
        assert_int_equal(TMK_GROW(items, n + 1, room), 0);
        assert_true(room > n);
        items[n] = n * n;
    }
    for (uint64_t n = 0; n < 5000; n++)
        assert_int_equal(items[n], n * n);
    assert_int_equal(TMK_GROW(items, UINT64_MAX / 4, room), TMK_ENOMEM); /* and nothing is lost */
    assert_int_equal(items[4999], 4999 * 4999);
    free(items);
}

static void test_arena(void **state)
{
    (void)state;
    struct tmk_arena a = {0};
    char *texts[2000];
    for (int i = 0; i < 2000; i++) {
        texts[i] = tmk_arena_format(&a, "text %d", i);
        uint8_t *zeros = tmk_arena_take(&a, (size_t)i);
        assert_int_equal((uintptr_t)zeros % _Alignof(max_align_t), 0);
        for (int k = 0; k < i; k++)
            assert_int_equal(zeros[k], 0);
        memset(zeros, 0xff, (size_t)i);
    }
    for (int i = 0; i < 2000; i++) {
        char expected[32];
        snprintf(expected, sizeof expected, "text %d", i);
        assert_string_equal(texts[i], expected);
    }
    assert_string_equal(tmk_arena_text(&a, "abcdef", 3), "abc");
    assert_non_null(tmk_arena_take(&a, 1 << 20)); /* larger than a block */
    assert_null(tmk_arena_take(&a, SIZE_MAX));
    tmk_arena_fini(&a);
    assert_null(a.blocks);
}

static void test_textmap(void **state)
{
    (void)state;
    struct tmk_textmap m = {0};
    struct tmk_arena a = {0};
    uint32_t number;
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 3000; i++) {
            const char *text = i == 7 ? NULL : tmk_arena_format(&a, "key %u", i);
            assert_int_equal(tmk_textmap_put(&m, text, &number), 0);
            assert_int_equal(number, i);
        }
    }
    assert_int_equal(m.n, 3000);
    assert_null(m.texts[7]);
    assert_int_equal(tmk_textmap_put(&m, "", &number), 0); /* empty is not unknown */
    assert_int_equal(number, 3000);
    tmk_textmap_fini(&m);
    tmk_arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grow),
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_textmap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
