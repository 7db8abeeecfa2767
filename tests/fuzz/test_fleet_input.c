/* SPDX-License-Identifier: MIT */
/* test_fleet_input.c - what is parsed of others, by an agent: requests, web-config files, control
 * groups, environments, label values, Accept headers; by fleet: answers of Prometheus. Good samples
 * are cut, spliced and changed at random; each parser gets its bytes in memory that ends where they
 * end, so that the sanitizers see any step beyond. What comes out has to be what it promises: an
 * ended text, valid UTF-8, a known status. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "fleet/cluster/prometheus.h"
#include "fleet/container.h"
#include "fleet/exposition.h"
#include "fleet/http_auth.h"
#include "fleet/http_request.h"
#include "fleet/metric_sink.h"
#include "fleet/process_facts.h"
#include "fleet/web_config.h"
#include "kit/utf8.h"
#include "trace_kit.h"

enum { MOST_BYTES = 12000, USUAL_ROUNDS = 60000 };

static const char *const samples[] = {
    "GET /metrics HTTP/1.1\r\nHost: localhost:9742\r\nAccept: application/openmetrics-text;"
    "version=1.0.0;q=0.75,text/plain;q=0.5\r\nAuthorization: Basic cHJvbTpzZWNyZXQ=\r\n\r\n",
    "POST /api/sql?pid=1 HTTP/1.1\r\nHost: [::1]:80\r\nCookie: a=1\r\nContent-Type: "
    "application/sql\r\n"
    "Content-Length: 8\r\n\r\nSELECT 1",
    "HEAD /healthz?x=1 HTTP/1.0\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    "tls_server_config:\n  cert_file: \"a\\tb\"\n  key_file: 'it''s'\n  min_version: TLS12\n"
    "basic_auth_users:\n  prom: $2y$04$j1Su6h/VXpt53m4s1HL7Wua4uECFip/PPykMfXDFiqVETJJPX1UV2\n",
    "12:memory:/kubepods/pod8d4bd1a1-1a2b-4c3d-9e8f-0123456789ab/"
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n0::/\n",
    "HOSTNAME=train-0\001POD_NAME=x\001SLURM_JOB_ID=7\001TIDEMARK_JOB=\xe6\xad\xa5\xff\n\"\\",
    "Basic cHJvbTpzZWNyZXQ=",
    "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"metric\":{"
    "\"__name__\":\"up\",\"host\":\"n\\u00e4\\\"1\"},\"value\":[1700000000.5,\"1\"]},{\"metric\":{}"
    ","
    "\"values\":[[1,\"NaN\"],[2,\"1e3\"]]}]},\"warnings\":[]}",
};

static uint64_t rounds_given(void)
{
    const char *text = getenv("FUZZ_ROUNDS");
    return text ? strtoull(text, NULL, 10) : USUAL_ROUNDS;
}

static uint64_t seed_given(void)
{
    const char *text = getenv("FUZZ_SEED");
    return text ? strtoull(text, NULL, 10) : 23;
}

/* ---- making inputs ---- */

/* Append a sample, mostly from its beginning to its end. */
static size_t splice(struct kit_random *random, char *to, size_t n)
{
    const char *sample = samples[kit_random_below(random, sizeof samples / sizeof samples[0])];
    size_t length = strlen(sample);
    size_t from = kit_random_below(random, 3) ? 0 : kit_random_below(random, length);
    size_t part = length - from;
    if (kit_random_below(random, 3) == 0)
        part = kit_random_below(random, part + 1);
    if (n + part > MOST_BYTES)
        part = MOST_BYTES - n;
    memcpy(to + n, sample + from, part);
    return n + part;
}

static size_t make_input(struct kit_random *random, char *to)
{
    size_t n = splice(random, to, 0);
    for (uint64_t i = kit_random_below(random, 4); i > 0; i--)
        n = splice(random, to, n);
    if (kit_random_below(random, 50) == 0) { /* long ones */
        size_t more = kit_random_below(random, MOST_BYTES - n);
        memset(to + n, (int)kit_random_below(random, 256), more);
        n += more;
    }
    for (uint64_t i = kit_random_below(random, 6); i > 0 && n > 0; i--)
        to[kit_random_below(random, n)] = (char)kit_random_next(random);
    return n;
}

/* ---- the parsers ---- */

static void try_request(const char *bytes, size_t n)
{
    struct tmk_http_request r;
    size_t used = 0;
    int status = tmk_http_request_parse(bytes, n, &r, &used);
    assert_true(status == 0 || status == 200 || (status >= 400 && status <= 505));
    assert_true(status == 0 || strcmp(tmk_http_status_text(status), "Error") != 0);
    if (status != 200)
        return;
    assert_in_range(used, 1, n);
    assert_int_equal(r.path[0], '/');
    assert_true(memchr(r.path, '\0', sizeof r.path) && memchr(r.accept, '\0', sizeof r.accept) &&
                memchr(r.authorization, '\0', sizeof r.authorization));
}

static void try_post(const char *bytes, size_t n)
{
    enum { BODY_MOST = 1000 };
    struct tmk_http_request r;
    size_t used = 0;
    int status = tmk_http_request_parse_post(bytes, n, BODY_MOST, &r, &used);
    assert_true(status == 0 || status == 200 || (status >= 400 && status <= 505));
    assert_true(status == 0 || strcmp(tmk_http_status_text(status), "Error") != 0);
    if (status != 200)
        return;
    assert_in_range(used, 1, n);
    assert_false(r.is_head);
    assert_in_range(r.n_body, 0, r.is_post ? BODY_MOST : 0);
    assert_true(memchr(r.query, '\0', sizeof r.query) && memchr(r.cookie, '\0', sizeof r.cookie) &&
                memchr(r.host, '\0', sizeof r.host) &&
                memchr(r.content_type, '\0', sizeof r.content_type));
}

static int check_series(void *arg, const struct tmk_prometheus_series *s)
{
    uint64_t *n_series = arg;
    assert_in_range(s->n_labels, 0, TMK_PROMETHEUS_LABELS_MOST);
    for (unsigned i = 0; i < s->n_labels; i++)
        assert_true(strlen(s->labels[i].name) + strlen(s->labels[i].value) < MOST_BYTES);
    for (uint64_t i = 1; i < s->n_points; i++)
        assert_true(s->points[i - 1].time_s <= s->points[i].time_s);
    return ++*n_series > MOST_BYTES ? TMK_EINVAL : 0;
}

static void try_answer(const char *bytes, size_t n)
{
    uint64_t n_series = 0;
    struct tmk_error err = {0};
    int rc = tmk_prometheus_read(bytes, n, check_series, &n_series, &err);
    assert_true(rc == 0 || (rc == TMK_EIO && err.text[0] != '\0'));
}

static void try_config(const char *bytes, size_t n)
{
    struct tmk_web_config config;
    struct tmk_error err = {0};
    int rc = tmk_web_config_parse(bytes, n, "/f", &config, &err);
    if (rc < 0) {
        assert_int_equal(rc, TMK_EINVAL);
        assert_true(err.text[0] != '\0');
        return;
    }
    assert_in_range(config.n_users, 0, TMK_WEB_USERS_MOST);
    assert_true(!config.has_tls || (config.cert_file[0] && config.key_file[0]));
    for (unsigned i = 0; i < config.n_users; i++)
        assert_int_equal(strlen(config.users[i].hash), TMK_WEB_HASH_BYTES - 1);
}

/* `text` ends in a zero byte, and may have others before. */
static void try_texts(const char *text, size_t n)
{
    struct tmk_cgroup_name group;
    struct tmk_container container;
    char job[TMK_JOB_NAME_BYTES], clean[TMK_LABEL_VALUE_BYTES + 1], name[TMK_WEB_NAME_BYTES],
        password[TMK_PASSWORD_BYTES];
    (void)tmk_cgroup_name_parse(text, &group);
    assert_true(group.id[0] == '\0' || strlen(group.id) == 64);
    tmk_container_name(&group, text, n, text, &container);
    tmk_job_name_of_environ(text, n, job);
    assert_true(memchr(job, '\0', sizeof job) != NULL);
    tmk_job_name_of_run(text, job);
    (void)tmk_exposition_choose(text);
    if (tmk_http_basic_decode(text, name, password))
        assert_true(strlen(name) < sizeof name && strlen(password) < sizeof password);
    tmk_label_value_clean(text, clean);
    for (const char *at = clean; *at;) {
        const char *before = at;
        if (tmk_utf8_next(&at) == TMK_UTF8_BAD)
            assert_memory_equal(before, "\xef\xbf\xbd", 3);
    }
}

static void test_random(void **unused)
{
    (void)unused;
    struct kit_random random = {seed_given()};
    char *bytes = malloc(MOST_BYTES);
    for (uint64_t round = rounds_given(); round > 0; round--) {
        size_t n = make_input(&random, bytes);
        char *exact = malloc(n + 1);
        memcpy(exact, bytes, n);
        exact[n] = '\0';
        for (size_t i = 0; i < n && round % 2; i++)
            exact[i] = exact[i] == '\001' ? '\0' : exact[i];
        try_texts(exact, n);
        exact = realloc(exact, n ? n : 1);
        try_request(exact, n);
        try_post(exact, n);
        try_config(exact, n);
        try_answer(exact, n);
        free(exact);
    }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
