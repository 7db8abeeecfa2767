/* SPDX-License-Identifier: MIT */
/* fleet/otlp_push.c - see otlp_push.h. Each push has a connection of its own: they are minutes
 * apart, and libevent cannot use one with TLS again. */
#include "fleet/otlp_push.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/http.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/tls.h"

enum { HTTP_PORT = 80, HTTPS_PORT = 443, ANSWER_MOST = 1 << 16, PATH_BYTES = 1024 };

static const char metrics_path[] = "/v1/metrics";

struct tmk_otlp_push {
    struct event_base *base;
    struct evdns_base *dns;
    SSL_CTX *tls; /* NULL: http */
    void (*say)(const char *text);
    char host[256], path[PATH_BYTES];
    uint16_t port;
    char header_text[2048]; /* cut at its separators */
    const char *keys[TMK_OTLP_HEADERS_MOST], *values[TMK_OTLP_HEADERS_MOST];
    unsigned n_headers;
    struct evhttp_connection *connection; /* NULL: nothing is under way */
    struct event *freeing;                /* a connection cannot be freed in its own callback */
    bool is_failing;
    uint64_t n_ok, n_failed;
};

/* ---- settings ---- */

static bool is_header_text(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || (unsigned char)*text == 0x7f)
            return false;
    return true;
}

static int take_headers(struct tmk_otlp_push *p, const char *headers, struct tmk_error *err)
{
    char *rest = p->header_text, *part;
    if (strlen(headers) >= sizeof p->header_text || !is_header_text(headers))
        return tmk_fail(err, TMK_EINVAL, "the headers for OTLP are too long or no text");
    strcpy(p->header_text, headers);
    while ((part = strsep(&rest, ",")) != NULL) {
        part += strspn(part, " ");
        char *equals = strchr(part, '=');
        if (!*part)
            continue;
        if (!equals || equals == part || p->n_headers == TMK_OTLP_HEADERS_MOST)
            return tmk_fail(err, TMK_EINVAL, "the headers for OTLP are not key=value,key=value");
        *equals = '\0';
        p->keys[p->n_headers] = part;
        p->values[p->n_headers++] = equals + 1;
    }
    return 0;
}

static int take_url(struct tmk_otlp_push *p, const struct evhttp_uri *uri, const char *ca_file,
                    struct tmk_error *err)
{
    const char *scheme = evhttp_uri_get_scheme(uri), *host = evhttp_uri_get_host(uri);
    const char *path = evhttp_uri_get_path(uri);
    bool is_tls = scheme && strcasecmp(scheme, "https") == 0;
    if (!host || !*host || strlen(host) >= sizeof p->host || !scheme ||
        (!is_tls && strcasecmp(scheme, "http") != 0) || evhttp_uri_get_userinfo(uri))
        return tmk_fail(err, TMK_EINVAL, "it is not http://HOST:PORT or https://HOST:PORT");
    size_t n = path ? strlen(path) : 0, end = sizeof metrics_path - 1;
    bool is_whole = n >= end && strcmp(path + n - end, metrics_path) == 0;
    while (!is_whole && n > 0 && path[n - 1] == '/')
        n--;
    if (n + end >= sizeof p->path)
        return tmk_fail(err, TMK_EINVAL, "it is too long");
    snprintf(p->path, sizeof p->path, "%.*s%s", (int)n, path ? path : "",
             is_whole ? "" : metrics_path);
    size_t bracket = host[0] == '[';
    snprintf(p->host, sizeof p->host, "%.*s", (int)(strlen(host) - 2 * bracket), host + bracket);
    int port = evhttp_uri_get_port(uri);
    p->port = (uint16_t)(port > 0 ? port : is_tls ? HTTPS_PORT : HTTP_PORT);
    return is_tls ? tmk_tls_client(ca_file, &p->tls, err) : 0;
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
    snprintf(text, sizeof text, "OTLP to %s: %s", p->host,
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

static struct bufferevent *make_client(struct tmk_otlp_push *p)
{
    if (!p->tls)
        return bufferevent_socket_new(p->base, -1, BEV_OPT_CLOSE_ON_FREE);
    SSL *ssl = SSL_new(p->tls);
    if (!ssl)
        return NULL;
    SSL_set_tlsext_host_name(ssl, p->host);
    SSL_set1_host(ssl, p->host);
    struct bufferevent *bev = bufferevent_openssl_socket_new(
        p->base, -1, ssl, BUFFEREVENT_SSL_CONNECTING, BEV_OPT_CLOSE_ON_FREE);
    if (!bev)
        SSL_free(ssl);
    else
        bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
    return bev;
}

static struct evhttp_request *make_request(struct tmk_otlp_push *p, const char *body, size_t n)
{
    struct evhttp_request *request = evhttp_request_new(on_answer, p);
    if (!request)
        return NULL;
    struct evkeyvalq *fields = evhttp_request_get_output_headers(request);
    evhttp_add_header(fields, "Host", p->host);
    evhttp_add_header(fields, "Content-Type", "application/json");
    evhttp_add_header(fields, "User-Agent", "tidemark-agent");
    evhttp_add_header(fields, "Connection", "close");
    for (unsigned i = 0; i < p->n_headers; i++)
        evhttp_add_header(fields, p->keys[i], p->values[i]);
    evbuffer_add(evhttp_request_get_output_buffer(request), body, n);
    return request;
}

void tmk_otlp_push_send(struct tmk_otlp_push *p, const char *body, size_t n)
{
    if (p->connection) {
        note_result(p, "it has not answered yet");
        return;
    }
    struct bufferevent *bev = make_client(p);
    p->connection =
        bev ? evhttp_connection_base_bufferevent_new(p->base, p->dns, bev, p->host, p->port) : NULL;
    if (!p->connection) {
        if (bev)
            bufferevent_free(bev);
        note_result(p, "out of memory");
        return;
    }
    evhttp_connection_set_timeout(p->connection, TMK_OTLP_TIMEOUT_S);
    evhttp_connection_set_max_body_size(p->connection, ANSWER_MOST);
    evhttp_connection_set_max_headers_size(p->connection, ANSWER_MOST);
    struct evhttp_request *request = make_request(p, body, n);
    if (!request || evhttp_make_request(p->connection, request, EVHTTP_REQ_POST, p->path) < 0) {
        note_result(p, "cannot connect");
        on_free(-1, 0, p);
    }
}

/* ---- open, close ---- */

static int open_push(struct tmk_otlp_push *p, const struct tmk_otlp_settings *settings,
                     struct tmk_error *err)
{
    struct tmk_error inner = {0};
    struct evhttp_uri *uri = evhttp_uri_parse(settings->url);
    int rc = uri ? take_url(p, uri, settings->ca_file, &inner)
                 : tmk_fail(&inner, TMK_EINVAL, "it is no URL");
    if (uri)
        evhttp_uri_free(uri);
    if (rc < 0)
        return tmk_fail(err, rc, "'%s': %s", settings->url, inner.text);
    if (settings->headers && (rc = take_headers(p, settings->headers, err)) < 0)
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
    SSL_CTX_free(p->tls);
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
