/* SPDX-License-Identifier: MIT */
/* Answers of Prometheus are read as what they are, and the texts of questions are safe. What is no
 * answer is tested over real sockets (tests/fleet/test_fleet_hostile.py) and with random bytes
 * (tests/fuzz/test_fleet_input.c). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "fleet/cluster/cluster.h"
#include "fleet/cluster/cluster_queries.h"
#include "fleet/cluster/prometheus.h"
#include "kit/amount.h"
#include "kit/arena.h"

struct seen {
    unsigned n;
    char text[1024];
    int rc; /* to return */
};

/* Write each series as "host=a value, time value, ...;". */
static int note_series(void *arg, const struct tmk_prometheus_series *s)
{
    struct seen *seen = arg;
    size_t n = strlen(seen->text);
    const char *host = tmk_prometheus_label(s, "host");
    n += (size_t)snprintf(seen->text + n, sizeof seen->text - n, "host=%s %g", host ? host : "-",
                          s->value);
    for (uint64_t i = 0; i < s->n_points; i++)
        n += (size_t)snprintf(seen->text + n, sizeof seen->text - n, ", %.3f %g",
                              s->points[i].time_s, s->points[i].value);
    snprintf(seen->text + n, sizeof seen->text - n, ";");
    seen->n++;
    return seen->rc;
}

static int read_text(const char *body, struct seen *seen, struct tmk_error *err)
{
    *seen = (struct seen){.rc = seen->rc};
    return tmk_prometheus_read(body, strlen(body), note_series, seen, err);
}

static void test_forms(void **state)
{
    struct seen seen = {.rc = 0};
    (void)state;
    assert_int_equal(
        read_text("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":["
                  "{\"metric\":{\"host\":\"a\",\"x\":\"\"},\"value\":[1.5,\"2\"]},"
                  "{\"value\":[1,\"-Inf\"],\"metric\":{\"host\":\"\"},\"more\":{}}]},"
                  "\"warnings\":[\"w\"]}",
                  &seen, NULL),
        0);
    assert_string_equal(seen.text, "host=a 2;host=- nan;");
    assert_int_equal(
        read_text(
            "{\"data\":{\"result\":[7,\"1e3\"],\"resultType\":\"scalar\"},\"status\":\"success\"}",
            &seen, NULL),
        0);
    assert_string_equal(seen.text, "host=- 1000;");
    assert_int_equal(
        read_text("{\"status\":\"success\",\"data\":{\"result\":[{\"metric\":{},\"values\":"
                  "[[1,\"1\"],[2.25,\"NaN\"]]},{\"metric\":{},\"values\":[]}]}}",
                  &seen, NULL),
        0);
    assert_string_equal(seen.text, "host=- nan, 1.000 1, 2.250 nan;host=- nan;");
}

static void test_taker_ends_it(void **state)
{
    struct seen seen = {.rc = TMK_ENOMEM};
    (void)state;
    assert_int_equal(
        read_text("{\"status\":\"success\",\"data\":{\"result\":[{\"metric\":{},\"value\":[1,"
                  "\"2\"]},{\"metric\":{},\"value\":[1,\"2\"]}]}}",
                  &seen, NULL),
        TMK_ENOMEM);
    assert_int_equal(seen.n, 1);
}

static void test_refused(void **state)
{
    struct seen seen = {.rc = 0};
    struct tmk_error err = {0};
    (void)state;
    assert_int_equal(read_text("{\"status\":\"error\",\"error\":\"no\"}", &seen, &err), TMK_EIO);
    assert_string_equal(err.text, "it refuses the question: no");
    assert_int_equal(
        read_text("{\"status\":\"success\",\"data\":{\"result\":[{\"metric\":{}}]}}", &seen, &err),
        TMK_EIO);
    assert_string_equal(err.text, "its answer cannot be read: byte 51: a series has no value");
}

static void test_texts_are_quoted(void **state)
{
    struct tmk_arena a = {0};
    const struct tmk_cluster_question all = {.window_s = 90},
                                      one = {.job = "a\"\\\n", .window_s = 1};
    (void)state;
    assert_string_equal(tmk_promql_text(&a, "a\"\\\nb"), "\"a\\\"\\\\\\nb\"");
    assert_string_equal(tmk_cluster_query_text(&a, TMK_QUERY_RANK_INFO, &one),
                        "max by (job, host, gpu, pid, cause, run) (tidemark_job_info{job="
                        "\"a\\\"\\\\\\n\"})");
    assert_string_equal(tmk_cluster_query_text(&a, TMK_QUERY_VERSIONS, &all),
                        "last_over_time(tidemark_build_info[90s])");
    const char *findings = tmk_cluster_query_text(&a, TMK_QUERY_FINDINGS, &all);
    assert_non_null(strstr(findings, "tidemark_job_oom_seconds{job!=\"\"} < 600"));
    assert_non_null(strstr(findings, "agent_silent"));
    assert_null(strchr(findings, '$'));
    assert_null(strstr(tmk_cluster_query_text(&a, TMK_QUERY_FINDINGS, &one), "agent_silent"));
    for (unsigned i = 0; i < TMK_QUERIES; i++)
        assert_non_null(tmk_cluster_query_text(&a, (enum tmk_cluster_query)i, &all));
    tmk_arena_fini(&a);
}

static void test_durations(void **state)
{
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {{0, "0 s"},          {45.4, "45 s"},       {119.4, "119 s"},   {120, "2 min"},
                 {200, "3 min 20 s"}, {7200, "2 h 00 min"}, {1e9, "> 100 days"}};
    char buffer[TMK_AMOUNT_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(tmk_cluster_duration(cases[i].seconds, buffer), cases[i].text);
    assert_null(tmk_cluster_duration(NAN, buffer));
    assert_null(tmk_cluster_duration(-1, buffer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),     cmocka_unit_test(test_taker_ends_it),
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_texts_are_quoted),
        cmocka_unit_test(test_durations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
