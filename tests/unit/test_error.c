/* SPDX-License-Identifier: MIT */
/* test_error.c - result codes have texts, and errors say what happened in the space they have. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

static void test_texts(void **unused)
{
    (void)unused;
    assert_string_equal(tmk_result_text(0), "ok");
    assert_string_equal(tmk_result_text(5), "ok"); /* counts are fine, too */
#define X(name, value, text)                                                                       \
    assert_int_equal(name, value);                                                                 \
    assert_true((value) < 0);                                                                      \
    assert_string_equal(tmk_result_text(name), text);
    TMK_ERRORS(X)
#undef X
}

static void test_codes_differ(void **unused)
{
    (void)unused;
    static const int codes[] = {
#define X(name, value, text) name,
        TMK_ERRORS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        for (size_t k = 0; k < i; k++) {
            assert_int_not_equal(codes[i], codes[k]);
            assert_string_not_equal(tmk_result_text(codes[i]), tmk_result_text(codes[k]));
        }
}

static void test_fail(void **unused)
{
    (void)unused;
    struct tmk_error err = {.os_error = 99};
    assert_int_equal(tmk_fail(&err, TMK_EDAMAGED, "byte %llu of %s", 12ull, "a.trace"),
                     TMK_EDAMAGED);
    assert_string_equal(err.text, "byte 12 of a.trace");
    assert_int_equal(err.os_error, 0);
    assert_int_equal(tmk_fail(NULL, TMK_EIO, "nobody listens"), TMK_EIO);
}

static void test_fail_os(void **unused)
{
    (void)unused;
    struct tmk_error err = {0};
    assert_int_equal(tmk_fail_os(&err, TMK_EIO, ENOSPC, "cannot write %s", "x"), TMK_EIO);
    assert_string_equal(err.text, "cannot write x: no space left on the device");
    assert_int_equal(err.os_error, ENOSPC);
    tmk_fail_os(&err, TMK_EIO, 4711, "cannot");
    assert_string_equal(err.text, "cannot: error 4711 of the system");
    assert_int_equal(tmk_fail_os(NULL, TMK_EIO, EIO, "nobody"), TMK_EIO);
}

static void test_long_text_is_cut(void **unused)
{
    (void)unused;
    char path[1000];
    struct tmk_error err = {0};
    memset(path, 'p', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    tmk_fail_os(&err, TMK_EIO, ENOENT, "cannot open %s", path);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_int_equal(err.os_error, ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_codes_differ),
        cmocka_unit_test(test_fail),
        cmocka_unit_test(test_fail_os),
        cmocka_unit_test(test_long_text_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
