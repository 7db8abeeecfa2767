/* SPDX-License-Identifier: MIT */
/* test_language.c - which language is chosen, and that data has none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/error.h"
#include "kit/catalogues.h"
#include "kit/language.h"

static const char *const settings[] = {"TIDEMARK_LANG", "LC_ALL", "LC_MESSAGES", "LANG",
                                       "LANGUAGE"};

/* Returns the language of an environment: values in the order of `settings`, NULL for unset. */
static const char *language_of(const char *const *values)
{
    for (size_t i = 0; i < TMK_N(settings); i++) {
        unsetenv(settings[i]);
        if (values[i])
            setenv(settings[i], values[i], 1);
    }
    tmk_language_from_environment();
    return tmk_language_name();
}

static void test_environment(void **state)
{
    (void)state;
    static const struct {
        const char *values[TMK_N(settings)];
        const char *language;
    } cases[] = {
        {{NULL, NULL, NULL, NULL, NULL}, "en"},
        {{NULL, NULL, NULL, "zh_CN.UTF-8", NULL}, "zh"},
        {{NULL, NULL, NULL, "zh_CN", NULL}, "zh"},
        {{NULL, NULL, NULL, "zh_SG.utf8", NULL}, "zh"},
        {{NULL, NULL, NULL, "zh_CN.GB18030", NULL}, "en"},
        {{NULL, NULL, NULL, "zh_TW.UTF-8", NULL}, "en"},
        {{NULL, NULL, NULL, "de_DE.UTF-8", NULL}, "en"},
        {{NULL, NULL, NULL, "en_US.UTF-8", "zh_CN:en"}, "zh"},
        {{NULL, NULL, NULL, "en_US.UTF-8", "fr:zh_CN:en"}, "zh"},
        {{NULL, NULL, NULL, "zh_CN.UTF-8", "en:zh_CN"}, "en"},
        {{NULL, NULL, NULL, "zh_CN.UTF-8", "fr"}, "zh"},
        {{NULL, NULL, NULL, "C.UTF-8", "zh_CN"}, "zh"},
        {{NULL, NULL, NULL, "C", "zh_CN"}, "en"},
        {{NULL, NULL, NULL, "POSIX", "zh_CN"}, "en"},
        {{NULL, NULL, NULL, NULL, "zh_CN"}, "en"},
        {{NULL, NULL, NULL, "en_US.GB18030", "zh_CN"}, "en"},
        {{NULL, "C", NULL, "zh_CN.UTF-8", NULL}, "en"},
        {{NULL, "", NULL, "zh_CN.UTF-8", NULL}, "zh"},
        {{NULL, NULL, "zh_CN.UTF-8", "en_US.UTF-8", NULL}, "zh"},
        {{NULL, "en_US.UTF-8", "zh_CN.UTF-8", "zh_CN.UTF-8", NULL}, "en"},
        {{"zh", "C", NULL, NULL, NULL}, "zh"},
        {{"en", NULL, NULL, "zh_CN.UTF-8", "zh_CN"}, "en"},
        {{"fr", NULL, NULL, "zh_CN.UTF-8", NULL}, "en"},
        {{"?", NULL, NULL, "zh_CN.UTF-8", NULL}, "zh"},
        {{"", NULL, NULL, "zh_CN.UTF-8", NULL}, "zh"},
    };
    for (size_t i = 0; i < TMK_N(cases); i++)
        if (strcmp(language_of(cases[i].values), cases[i].language) != 0)
            fail_msg("case %zu: %s", i, tmk_language_name());
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int rc;
        const char *language;
    } cases[] = {
        {"zh", 0, "zh"},         {"ZH", 0, "zh"},           {"zh-CN", 0, "zh"},
        {"zh_Hans_CN", 0, "zh"}, {"zh-Hant", 0, "en"},      {"zh_CN.UTF-8@pinyin", 0, "zh"},
        {"en", 0, "en"},         {"eng", 0, "en"},          {"C", 0, "en"},
        {"C.UTF-8", 0, "en"},    {"c", TMK_EINVAL, NULL},   {"chinese", TMK_EINVAL, NULL},
        {"z", TMK_EINVAL, NULL}, {"zh/", TMK_EINVAL, NULL}, {"", TMK_EINVAL, NULL},
    };
    for (size_t i = 0; i < TMK_N(cases); i++) {
        assert_int_equal(tmk_language_set("zh"), 0);
        if (tmk_language_set(cases[i].name) != cases[i].rc)
            fail_msg("'%s' is taken otherwise", cases[i].name);
        assert_string_equal(tmk_language_name(), cases[i].language ? cases[i].language : "zh");
    }
}

static void test_texts(void **state)
{
    (void)state;
    struct tmk_error err = {0};
    assert_int_equal(tmk_language_set("zh"), 0);
    assert_string_equal(_("out of memory"), "内存不足");
    assert_string_equal(_("no such message"), "no such message");
    assert_string_equal(tmk_result_text(TMK_ENOMEM), "内存不足");
    tmk_fail(&err, TMK_ENOMEM, "out of memory");
    assert_string_equal(err.text, "内存不足");
    tmk_language_begin_data();
    tmk_language_begin_data();
    tmk_language_end_data();
    assert_string_equal(_("out of memory"), "out of memory");
    assert_string_equal(tmk_result_text(TMK_ENOMEM), "out of memory");
    assert_string_equal(tmk_translated_for_people("out of memory"), "内存不足");
    assert_int_equal(tmk_language_set("en"), 0);
    struct tmk_language_state before = tmk_language_begin_people("zh");
    assert_string_equal(_("out of memory"), "内存不足");
    tmk_language_end_people(&before);
    assert_string_equal(tmk_language_name(), "en");
    assert_int_equal(tmk_language_set("zh"), 0);
    assert_string_equal(_("out of memory"), "out of memory");
    tmk_language_end_data();
    assert_string_equal(_("out of memory"), "内存不足");
    assert_int_equal(tmk_language_set("en"), 0);
    assert_string_equal(_("out of memory"), "out of memory");
    assert_string_equal(tmk_plural("one", "several", 1), "one");
    assert_string_equal(tmk_plural("one", "several", 0), "several");
}

/* bsearch() finds each. */
static void test_order(void **state)
{
    (void)state;
    assert_true(tmk_catalogue_zh.n_entries > 1);
    for (size_t i = 1; i < tmk_catalogue_zh.n_entries; i++)
        assert_true(strcmp(tmk_catalogue_zh.entries[i - 1].english,
                           tmk_catalogue_zh.entries[i].english) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
