/* SPDX-License-Identifier: MIT */
/* test_http_request.c - heads of requests: whole, in parts, and wrong in every way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fleet/http_request.h"

static int parse(const char *text, struct tmk_http_request *ret, size_t *ret_used)
{
    return tmk_http_request_parse(text, strlen(text), ret, ret_used);
}

static const char whole[] = "GET /metrics?x=%20 HTTP/1.1\r\n"
                            "Host: localhost:9742\r\n"
                            "ACCEPT: application/openmetrics-text\r\n"
                            "Accept:text/plain;q=0.5 \t\r\n"
                            "Authorization: Basic YTpi\r\n"
                            "X-Empty:\r\n"
                            "\r\n";

static void test_whole(void **state)
{
    (void)state;
    struct tmk_http_request r;
    size_t used = 0;
    char twice[2 * sizeof whole];
    strcpy(twice, whole);
    strcat(twice, "GET / HT");
    assert_int_equal(parse(twice, &r, &used), 200);
    assert_int_equal(used, strlen(whole));
    assert_string_equal(r.path, "/metrics");
    assert_string_equal(r.accept, "application/openmetrics-text,text/plain;q=0.5");
    assert_string_equal(r.authorization, "Basic YTpi");
    assert_false(r.is_head);
    assert_true(r.keeps_alive);
}

/* Until its last byte has come, a head is not complete. */
static void test_parts(void **state)
{
    (void)state;
    struct tmk_http_request r;
    size_t used;
    for (size_t n = 0; n < strlen(whole); n++)
        assert_int_equal(tmk_http_request_parse(whole, n, &r, &used), 0);
    assert_int_equal(tmk_http_request_parse(whole, strlen(whole), &r, &used), 200);
}

static void test_statuses(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int status;
    } cases[] = {
        {"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", 200},
        {"GET / HTTP/1.0\r\n\r\n", 200},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 200},
        {"GET / HTTP/1.1\r\n\r\n", 400}, /* no Host */
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
        {"GET / HTTP/1.1\nHost: a\n\n", 400}, /* no CR */
        {"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n: a\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\x01\r\n\r\n", 400},
        {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET metrics HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET /a\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET /\r\n\r\n", 400},
        {"\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: b\r\nAuthorization: b\r\n\r\n", 400},
        {"get / HTTP/1.1\r\nHost: a\r\n\r\n", 405},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", 405},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
        {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
        {"GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505},
        {"GET / JUNK/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", 413},
        {"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 413},
        {"\x16\x03\x01\x02", 400}, /* TLS to a plain listener */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tmk_http_request r;
        size_t used;
        int status = parse(cases[i].text, &r, &used);
        if (status != cases[i].status)
            fail_msg("case %zu: %d, not %d", i, status, cases[i].status);
    }
}

static void test_connection(void **state)
{
    (void)state;
    struct tmk_http_request r;
    size_t used;
    assert_int_equal(parse("HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", &r, &used),
                     200);
    assert_false(r.keeps_alive);
    assert_true(r.is_head);
    assert_int_equal(parse("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", &r, &used), 200);
    assert_false(r.keeps_alive);
}

static void test_limits(void **state)
{
    (void)state;
    static char text[2 * TMK_HTTP_HEAD_MOST];
    struct tmk_http_request r;
    size_t used;
    memset(text, 'a', sizeof text);
    memcpy(text, "GET / HTTP/1.1\r\nHost: a\r\nX: ", 28);
    assert_int_equal(tmk_http_request_parse(text, TMK_HTTP_HEAD_MOST - 1, &r, &used), 0);
    assert_int_equal(tmk_http_request_parse(text, TMK_HTTP_HEAD_MOST, &r, &used), 431);
    assert_int_equal(tmk_http_request_parse(text, sizeof text, &r, &used), 431);
    memcpy(text, "GET /", 5);
    memset(text + 5, 'p', TMK_HTTP_PATH_BYTES - 2);
    strcpy(text + 3 + TMK_HTTP_PATH_BYTES, " HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(parse(text, &r, &used), 200);
    assert_int_equal(strlen(r.path), TMK_HTTP_PATH_BYTES - 1);
    strcpy(text + 3 + TMK_HTTP_PATH_BYTES, "p HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(parse(text, &r, &used), 414);
    strcpy(text, "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: ");
    memset(text + strlen(text), 'x', TMK_HTTP_VALUE_BYTES);
    strcpy(text + 41 + TMK_HTTP_VALUE_BYTES, "\r\n\r\n");
    assert_int_equal(parse(text, &r, &used), 431);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),    cmocka_unit_test(test_parts),
        cmocka_unit_test(test_statuses), cmocka_unit_test(test_connection),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
