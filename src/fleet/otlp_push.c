/* SPDX-License-Identifier: MIT */
/* fleet/otlp_push.c - see otlp_push.h. Each push has a connection of its own: they are minutes
 * apart, and libevent cannot use one with TLS again. */
#include "fleet/otlp_push.h"

#include <event2/buffer.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/http_target.h"

enum { ANSWER_MOST = 1 << 16 };

static const char metrics_path[] = "/v1/metrics";

struct tmk_otlp_push {
    struct event_base *base;
    struct evdns_base *dns;
    struct tmk_http_target target;
    void (*say)(const char *text);
    struct evhttp_connection *connection; /* NULL: nothing is under way */
    struct event *freeing;                /* a connection cannot be freed in its own callback */
    bool is_failing;
    uint64_t n_ok, n_failed;
};

/* ---- settings ---- */

/* Add "/v1/metrics", unless the path ends in it. */
static int complete_path(struct tmk_http_target *t, const char *url, struct tmk_error *err)
{
    size_t n = strlen(t->path), end = sizeof metrics_path - 1;
    if (n >= end && strcmp(t->path + n - end, metrics_path) == 0)
        return 0;
    if (n + end >= sizeof t->path)
        return tmk_fail(err, TMK_EINVAL, "'%s': it is too long", url);
    strcpy(t->path + n, metrics_path);
    return 0;
}

/* ---- one push ---- */

static void on_free(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct tmk_otlp_push *p = arg;
    if (p->connection)
        evhttp_connection_free(p->connection);
    p->connection = NULL;
}

/* Count a result. `reason` NULL: it was taken. */
static void note_result(struct tmk_otlp_push *p, const char *reason)
{
    char text[512];
    p->n_ok += reason == NULL;
    p->n_failed += reason != NULL;
    if (p->is_failing == (reason != NULL))
        return;
    p->is_failing = reason != NULL;
    snprintf(text, sizeof text, "OTLP to %s: %s", p->target.host,
             reason ? reason : "metrics are taken again");
    p->say(text);
}

static void on_answer(struct evhttp_request *request, void *arg)
{
    struct tmk_otlp_push *p = arg;
    char reason[64];
    int code = request ? evhttp_request_get_response_code(request) : 0;
    struct timeval now = {0};
    snprintf(reason, sizeof reason, code ? "it answered %d" : "no answer", code);
    note_result(p, code >= 200 && code < 300 ? NULL : reason);
    event_add(p->freeing, &now);
}

static struct evhttp_request *make_request(struct tmk_otlp_push *p, const char *body, size_t n)
{
    struct evhttp_request *request = evhttp_request_new(on_answer, p);
    if (!request)
        return NULL;
    evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type",
                      "application/json");
    tmk_http_target_add_headers(&p->target, request, "tidemark-agent");
    evbuffer_add(evhttp_request_get_output_buffer(request), body, n);
    return request;
}

void tmk_otlp_push_send(struct tmk_otlp_push *p, const char *body, size_t n)
{
    if (p->connection) {
        note_result(p, "it has not answered yet");
        return;
    }
    p->connection = tmk_http_target_connect(&p->target, p->base, p->dns, NULL);
    if (!p->connection) {
        note_result(p, "out of memory");
        return;
    }
    evhttp_connection_set_timeout(p->connection, TMK_OTLP_TIMEOUT_S);
    evhttp_connection_set_max_body_size(p->connection, ANSWER_MOST);
    evhttp_connection_set_max_headers_size(p->connection, ANSWER_MOST);
    struct evhttp_request *request = make_request(p, body, n);
    if (!request ||
        evhttp_make_request(p->connection, request, EVHTTP_REQ_POST, p->target.path) < 0) {
        note_result(p, "cannot connect");
        on_free(-1, 0, p);
    }
}

/* ---- open, close ---- */

static int open_push(struct tmk_otlp_push *p, const struct tmk_otlp_settings *settings,
                     struct tmk_error *err)
{
    int rc = tmk_http_target_init(&p->target, settings->url, settings->ca_file, err);
    if (rc == 0)
        rc = complete_path(&p->target, settings->url, err);
    if (rc == 0 && settings->headers)
        rc = tmk_http_target_take_headers(&p->target, settings->headers, "OTLP", err);
    if (rc < 0)
        return rc;
    p->dns = evdns_base_new(p->base,
                            EVDNS_BASE_INITIALIZE_NAMESERVERS | EVDNS_BASE_DISABLE_WHEN_INACTIVE);
    p->freeing = evtimer_new(p->base, on_free, p);
    return p->freeing ? 0 : tmk_fail(err, TMK_ENOMEM, "out of memory");
}

int tmk_otlp_push_open(struct event_base *base, const struct tmk_otlp_settings *settings,
                       struct tmk_otlp_push **ret_push, struct tmk_error *err)
{
    struct tmk_otlp_push *p = calloc(1, sizeof *p);
    if (!p)
        return tmk_fail(err, TMK_ENOMEM, "out of memory");
    p->base = base;
    p->say = settings->say;
    int rc = open_push(p, settings, err);
    if (rc < 0) {
        tmk_otlp_push_close(p);
        return rc;
    }
    *ret_push = p;
    return 0;
}

struct tmk_otlp_push *tmk_otlp_push_close(struct tmk_otlp_push *p)
{
    if (!p)
        return NULL;
    if (p->connection)
        evhttp_connection_free(p->connection);
    if (p->freeing)
        event_free(p->freeing);
    if (p->dns)
        evdns_base_free(p->dns, 0);
    tmk_http_target_fini(&p->target);
    free(p);
    return NULL;
}

uint64_t tmk_otlp_push_n_ok(const struct tmk_otlp_push *p)
{
    return p->n_ok;
}

uint64_t tmk_otlp_push_n_failed(const struct tmk_otlp_push *p)
{
    return p->n_failed;
}
