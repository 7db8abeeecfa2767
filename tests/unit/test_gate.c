/* SPDX-License-Identifier: MIT */
/* test_gate.c - who may ask a served page: heads with a body, addresses taken apart, secrets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "fleet/http_request.h"
#include "web/gate.h"
#include "web/url_query.h"

static int parse(const char *text, struct tmk_http_request *ret)
{
    size_t used;
    return tmk_http_request_parse_post(text, strlen(text), 100, ret, &used);
}

static void test_post(void **state)
{
    (void)state;
    struct tmk_http_request r;
    assert_int_equal(
        parse("POST /api/sql?a=1 HTTP/1.1\r\nHost: a:1\r\nContent-Type: application/sql\r\n"
              "Cookie: a=1\r\nCookie: b=2\r\nContent-Length: 100\r\n\r\n",
              &r),
        200);
    assert_true(r.is_post);
    assert_string_equal(r.path, "/api/sql");
    assert_string_equal(r.query, "a=1");
    assert_string_equal(r.host, "a:1");
    assert_string_equal(r.cookie, "a=1;b=2");
    assert_string_equal(r.content_type, "application/sql");
    assert_int_equal(r.n_body, 100);
}

static void test_post_statuses(void **state)
{
    (void)state;
    static const struct {
        const char *rest;
        int status;
    } cases[] = {
        {"\r\n", 411},
        {"Content-Length: 0\r\n\r\n", 200},
        {"Content-Length: 101\r\n\r\n", 413},
        {"Content-Length: 99999999999999999999999\r\n\r\n", 413},
        {"Content-Length: -1\r\n\r\n", 400},
        {"Content-Length: 1 1\r\n\r\n", 400},
        {"Content-Length: \r\n\r\n", 400},
        {"Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400},
        {"Transfer-Encoding: chunked\r\n\r\n", 413},
        {"Content-Length: 1\r\nHost: b\r\n\r\n", 400},
    };
    for (size_t i = 0; i < TMK_N(cases); i++) {
        char text[256];
        struct tmk_http_request r;
        snprintf(text, sizeof text, "POST / HTTP/1.1\r\nHost: a\r\n%s", cases[i].rest);
        assert_int_equal(parse(text, &r), cases[i].status);
    }
    struct tmk_http_request r;
    assert_int_equal(parse("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", &r), 405);
    assert_int_equal(parse("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", &r), 413);
}

static void test_query(void **state)
{
    (void)state;
    char text[8];
    uint64_t n;
    assert_true(tmk_url_query_text("aa=0&a=x%20y+%2f&b=", "a", text, sizeof text));
    assert_string_equal(text, "x y /");
    assert_true(tmk_url_query_number("t0=5&t1=123456789012345678", "t1", &n));
    assert_int_equal(n, 123456789012345678);
    static const char *const wrong[] = {"a=%",  "a=%2",         "a=%zz", "a=%00", "a",
                                        "b=a=", "a=1234567890", "",      "A=1",   "a=1%2"};
    for (size_t i = 0; i < TMK_N(wrong); i++)
        assert_false(tmk_url_query_text(wrong[i], "a", text, sizeof text));
    static const char *const no_numbers[] = {"a=", "a=-1", "a=1x", "a=0x1",
                                             "a=1234567890123456789"};
    for (size_t i = 0; i < TMK_N(no_numbers); i++)
        assert_false(tmk_url_query_number(no_numbers[i], "a", &n));
}

static void test_secrets(void **state)
{
    (void)state;
    struct tmk_page_gate g, other;
    struct tmk_http_request r = {.path = "/", .host = "localhost:80"};
    assert_true(tmk_gate_init(&g, "/p/8", "node7"));
    assert_true(tmk_gate_init(&other, NULL, NULL));
    assert_string_equal(g.base_path, "/p/8/");
    assert_int_equal(strlen(g.token), 32);
    assert_string_not_equal(g.token, g.cookie);
    assert_string_not_equal(g.token, other.token);
    assert_int_equal(tmk_gate_check(&g, &r), TMK_GATE_FORBIDDEN);
    snprintf(r.query, sizeof r.query, "token=%s", g.token);
    assert_int_equal(tmk_gate_check(&g, &r), TMK_GATE_ENTERED);
    r.query[6] ^= 1;
    assert_int_equal(tmk_gate_check(&g, &r), TMK_GATE_FORBIDDEN);
    snprintf(r.cookie, sizeof r.cookie, "x=1; tidemark-0=%s", g.cookie);
    assert_int_equal(tmk_gate_check(&g, &r), TMK_GATE_GRANTED);
    strcpy(r.host, "NODE7:8888");
    assert_int_equal(tmk_gate_check(&g, &r), TMK_GATE_GRANTED);
    assert_int_equal(tmk_gate_check(&other, &r), TMK_GATE_WRONG_HOST);
    assert_string_equal(tmk_gate_path(&g, "/p/8/api/x"), "/api/x");
    assert_string_equal(tmk_gate_path(&g, "/api/x"), "/api/x");
    assert_false(tmk_gate_init(&g, "p", NULL));
    assert_false(tmk_gate_init(&g, "/a;b", NULL));
    assert_false(tmk_gate_init(&g, "/a\r\n", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_post),
        cmocka_unit_test(test_post_statuses),
        cmocka_unit_test(test_query),
        cmocka_unit_test(test_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
