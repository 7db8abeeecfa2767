/* SPDX-License-Identifier: MIT */
/* test_exposition.c - the text that Prometheus scrapes, byte for byte, and which form is asked for.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fleet/exposition.h"
#include "fleet/metric_sink.h"

static const struct tmk_metric_family used = {"used_bytes", TMK_METRIC_GAUGE, "bytes", "In use."},
                                      steps = {"steps", TMK_METRIC_COUNTER, NULL, "Steps."},
                                      build = {"build", TMK_METRIC_INFO, NULL, "The version."},
                                      nothing = {"nothing", TMK_METRIC_GAUGE, NULL, "No."};

static void tell(const struct tmk_metric_sink *s)
{
    const struct tmk_label labels[] = {{"gpu", "0"}, {"pod", NULL}, {"job", ""}, {"pid", "7"}};
    s->family(s->arg, &used);
    s->sample(s->arg, labels, 4, 17179869184.0);
    s->sample(s->arg, labels, 1, 0.1);
    s->sample(s->arg, labels, 1, NAN);
    s->sample(s->arg, labels, 0, 1.0 / 3);
    s->family(s->arg, &nothing);
    s->family(s->arg, &steps);
    s->sample(s->arg, labels + 3, 1, 9007199254740993.0);
    s->family(s->arg, &build);
    s->sample(s->arg, labels + 1, 1, INFINITY);
}

static void check_text(enum tmk_exposition_form form, const char *expected)
{
    struct tmk_exposition x;
    tmk_exposition_init(&x, form);
    struct tmk_metric_sink sink = tmk_exposition_sink(&x);
    tell(&sink);
    assert_int_equal(tmk_exposition_end(&x), 0);
    assert_string_equal(x.text, expected);
    assert_int_equal(x.n_bytes, strlen(expected));
    tmk_exposition_fini(&x);
}

static void test_openmetrics(void **state)
{
    (void)state;
    check_text(TMK_EXPOSITION_OPENMETRICS, "# HELP used_bytes In use.\n"
                                           "# TYPE used_bytes gauge\n"
                                           "# UNIT used_bytes bytes\n"
                                           "used_bytes{gpu=\"0\",pid=\"7\"} 17179869184\n"
                                           "used_bytes{gpu=\"0\"} 0.1\n"
                                           "used_bytes 0.33333333333333331\n"
                                           "# HELP steps Steps.\n"
                                           "# TYPE steps counter\n"
                                           "steps_total{pid=\"7\"} 9007199254740992\n"
                                           "# HELP build The version.\n"
                                           "# TYPE build info\n"
                                           "build_info +Inf\n"
                                           "# EOF\n");
}

static void test_classic(void **state)
{
    (void)state;
    check_text(TMK_EXPOSITION_CLASSIC, "# HELP used_bytes In use.\n"
                                       "# TYPE used_bytes gauge\n"
                                       "used_bytes{gpu=\"0\",pid=\"7\"} 17179869184\n"
                                       "used_bytes{gpu=\"0\"} 0.1\n"
                                       "used_bytes 0.33333333333333331\n"
                                       "# HELP steps_total Steps.\n"
                                       "# TYPE steps_total counter\n"
                                       "steps_total{pid=\"7\"} 9007199254740992\n"
                                       "# HELP build_info The version.\n"
                                       "# TYPE build_info gauge\n"
                                       "build_info +Inf\n");
}

/* ---- hostile label values ---- */

static void check_label(const char *value, const char *expected)
{
    struct tmk_exposition x;
    struct tmk_label label = {"job", value};
    tmk_exposition_init(&x, TMK_EXPOSITION_CLASSIC);
    struct tmk_metric_sink sink = tmk_exposition_sink(&x);
    sink.family(sink.arg, &nothing);
    sink.sample(sink.arg, &label, 1, 1);
    assert_int_equal(tmk_exposition_end(&x), 0);
    const char *line = strstr(x.text, "\nnothing{") + 1;
    char whole[1024];
    snprintf(whole, sizeof whole, "nothing{job=\"%s\"} 1\n", expected);
    assert_string_equal(line, whole);
    tmk_exposition_fini(&x);
}

static void test_labels(void **state)
{
    (void)state;
    check_label("a\"} 1\nevil 2", "a\\\"} 1\\nevil 2");
    check_label("back\\slash", "back\\\\slash");
    check_label("\\n", "\\\\n");
    check_label("训练", "训练");
    check_label("bad\xff\xc3", "bad\xef\xbf\xbd\xef\xbf\xbd");
    check_label("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* a surrogate */
}

/* 128 bytes stay; of 129 bytes 125 do, without half a character, and "…" follows. */
static void test_long_labels(void **state)
{
    (void)state;
    char value[400], expected[400], clean[TMK_LABEL_VALUE_BYTES + 1];
    memset(value, 'x', sizeof value);
    value[128] = '\0';
    check_label(value, value);
    value[128] = 'x';
    value[129] = '\0';
    snprintf(expected, sizeof expected, "%.125s…", value);
    check_label(value, expected);
    for (size_t n = 100; n < 140; n++) { /* the cut falls at each place of a character */
        memset(value, 'x', n);
        for (size_t i = n; i + 3 < sizeof value; i += 3)
            memcpy(value + i, "步", 4);
        tmk_label_value_clean(value, clean);
        size_t length = strlen(clean);
        assert_in_range(length, TMK_LABEL_VALUE_BYTES - 3, TMK_LABEL_VALUE_BYTES);
        assert_string_equal(clean + length - 3, "…");
        assert_int_equal((length - 3 - (n < length - 3 ? n : length - 3)) % 3, 0);
    }
}

/* ---- Accept ---- */

static void test_accept(void **state)
{
    (void)state;
    static const struct {
        const char *accept;
        enum tmk_exposition_form form;
    } cases[] = {
        {NULL, TMK_EXPOSITION_CLASSIC},
        {"", TMK_EXPOSITION_CLASSIC},
        {"*/*", TMK_EXPOSITION_CLASSIC},
        {"text/html", TMK_EXPOSITION_CLASSIC},
        {"application/openmetrics-text", TMK_EXPOSITION_OPENMETRICS},
        {"Application/OpenMetrics-Text; version=1.0.0", TMK_EXPOSITION_OPENMETRICS},
        {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;"
         "version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         TMK_EXPOSITION_OPENMETRICS},
        {"text/plain, application/openmetrics-text;q=0.5", TMK_EXPOSITION_CLASSIC},
        {"text/plain;q=0.4,application/openmetrics-text; q=0.5", TMK_EXPOSITION_OPENMETRICS},
        {"application/openmetrics-text;q=0", TMK_EXPOSITION_CLASSIC},
        {"application/openmetrics-textual", TMK_EXPOSITION_CLASSIC},
        {",,;q=,", TMK_EXPOSITION_CLASSIC},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(tmk_exposition_choose(cases[i].accept), cases[i].form);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_openmetrics), cmocka_unit_test(test_classic),
        cmocka_unit_test(test_labels),      cmocka_unit_test(test_long_labels),
        cmocka_unit_test(test_accept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
