/* SPDX-License-Identifier: MIT */
/* fleet/cluster/http_get.c - see http_get.h. libevent's client does HTTP and TLS. Names are
 * resolved and addresses tried before it: of a connection that fails, it does not say why. */
#include "fleet/cluster/http_get.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/http.h>
#include <math.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fleet/http_target.h"

enum {
    CREDENTIAL_BYTES = 4096,
    HEAD_MOST = 1 << 16,
    ADDRESS_BYTES = 64, /* of an IPv6 address with its zone */
    TARGET_BYTES = 1 << 14,
};

struct tmk_http_get {
    struct tmk_http_target target;
    struct event_base *base;
    char address[ADDRESS_BYTES]; /* which has taken a connection; "": not looked for yet */
    char authorization[CREDENTIAL_BYTES * 2];
    double timeout_s;
    size_t body_most;
    /* The request that is under way: */
    struct tmk_http_get_answer *answer;
    bool is_done, is_late;
    int failure; /* of enum evhttp_request_error, -1: none */
};

static void ignore_log(int severity, const char *text)
{
    (void)severity;
    (void)text;
}

/* ---- settings ---- */

static bool is_credential(const char *text)
{
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return false;
    return strlen(text) < CREDENTIAL_BYTES / 2;
}

static int set_authorization(struct tmk_http_get *h, const struct tmk_http_get_settings *s,
                             struct tmk_error *err)
{
    char pair[CREDENTIAL_BYTES];
    if ((s->user && !is_credential(s->user)) || (s->password && !is_credential(s->password)) ||
        (s->token && !is_credential(s->token)))
        return tmk_fail(err, TMK_EINVAL,
                        "a name, password or token is too long or has control characters");
    if (s->token) {
        snprintf(h->authorization, sizeof h->authorization, "Bearer %s", s->token);
    } else if (s->user) {
        int n = snprintf(pair, sizeof pair, "%s:%s", s->user, s->password ? s->password : "");
        strcpy(h->authorization, "Basic ");
        EVP_EncodeBlock((unsigned char *)h->authorization + strlen(h->authorization),
                        (const unsigned char *)pair, n);
    }
    return 0;
}

int tmk_http_get_open(const struct tmk_http_get_settings *settings, struct tmk_http_get **ret,
                      struct tmk_error *err)
{
    struct tmk_http_get *h = calloc(1, sizeof *h);
    if (!h)
        return tmk_fail(err, TMK_ENOMEM, "out of memory");
    event_set_log_callback(ignore_log);
    h->timeout_s = settings->timeout_s;
    h->body_most = settings->body_most;
    int rc = tmk_http_target_init(&h->target, settings->url, settings->ca_file, err);
    if (rc == 0)
        rc = set_authorization(h, settings, err);
    if (rc == 0 && settings->headers)
        rc = tmk_http_target_take_headers(&h->target, settings->headers, "Prometheus", err);
    if (rc == 0 && !(h->base = event_base_new()))
        rc = tmk_fail(err, TMK_ENOMEM, "out of memory");
    if (rc < 0) {
        tmk_http_get_close(h);
        return rc;
    }
    *ret = h;
    return 0;
}

struct tmk_http_get *tmk_http_get_close(struct tmk_http_get *h)
{
    if (!h)
        return NULL;
    tmk_http_target_fini(&h->target);
    if (h->base)
        event_base_free(h->base);
    free(h);
    return NULL;
}

/* ---- which address ---- */

/* Connect and hang up. 0, or the errno of the failure. */
static int try_address(const struct addrinfo *a, double timeout_s)
{
    int problem = 0;
    socklen_t n = sizeof problem;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    if (connect(fd, a->ai_addr, a->ai_addrlen) < 0 && (problem = errno) == EINPROGRESS) {
        struct pollfd waiting = {.fd = fd, .events = POLLOUT};
        int found = poll(&waiting, 1, (int)(timeout_s * 1000));
        if (found == 0)
            problem = ETIMEDOUT;
        else if (found < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &n) < 0)
            problem = errno;
    }
    close(fd);
    return problem;
}

/* Find the first address of the host that takes connections. */
static int find_address(struct tmk_http_get *h, struct tmk_error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    char port[8];
    int problem = ECONNREFUSED;
    snprintf(port, sizeof port, "%u", h->target.port);
    int rc = getaddrinfo(h->target.host, port, &hints, &list);
    if (rc != 0)
        return tmk_fail(err, TMK_EIO, "the name '%s' is not known: %s", h->target.host,
                        rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
    for (struct addrinfo *a = list; a && !h->address[0]; a = a->ai_next) {
        problem = try_address(a, h->timeout_s);
        if (problem == 0)
            getnameinfo(a->ai_addr, a->ai_addrlen, h->address, sizeof h->address, NULL, 0,
                        NI_NUMERICHOST);
    }
    freeaddrinfo(list);
    return h->address[0] ? 0 : tmk_fail(err, TMK_EIO, "cannot connect: %s", strerror(problem));
}

/* ---- one request ---- */

static void end_request(struct tmk_http_get *h)
{
    h->is_done = true;
    event_base_loopbreak(h->base);
}

static void on_late(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct tmk_http_get *h = arg;
    h->is_late = true;
    end_request(h);
}

static void on_failure(enum evhttp_request_error failure, void *arg)
{
    struct tmk_http_get *h = arg;
    h->failure = (int)failure;
}

static void take_answer(struct tmk_http_get_answer *answer, struct evhttp_request *request)
{
    struct evbuffer *body = evbuffer_new();
    const char *location =
        evhttp_find_header(evhttp_request_get_input_headers(request), "Location");
    if (!body)
        return;
    evbuffer_add_buffer(body, evhttp_request_get_input_buffer(request));
    size_t n = evbuffer_get_length(body);
    const char *bytes = n > 0 ? (const char *)evbuffer_pullup(body, -1) : "";
    if (!bytes) {
        evbuffer_free(body);
        return;
    }
    *answer = (struct tmk_http_get_answer){
        .status = evhttp_request_get_response_code(request), .body = bytes, .n = n, .owner = body};
    snprintf(answer->location, sizeof answer->location, "%s", location ? location : "");
}

static void on_get_answer(struct evhttp_request *request, void *arg)
{
    struct tmk_http_get *h = arg;
    if (request && h->failure < 0 && evhttp_request_get_response_code(request) > 0)
        take_answer(h->answer, request);
    end_request(h);
}

/* Say what TLS did not like; false: nothing. */
static bool fail_by_tls(struct evhttp_connection *connection, struct tmk_error *err)
{
    struct bufferevent *bev = evhttp_connection_get_bufferevent(connection);
    SSL *ssl = bev ? bufferevent_openssl_get_ssl(bev) : NULL;
    if (!ssl)
        return false;
    long verdict = SSL_get_verify_result(ssl);
    unsigned long code = bufferevent_get_openssl_error(bev);
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    if (verdict != X509_V_OK)
        tmk_fail(err, TMK_EIO, "its certificate is not trusted (%s); --ca-file FILE names who is",
                 X509_verify_cert_error_string(verdict));
    else if (reason)
        tmk_fail(err, TMK_EIO, "TLS fails: %s; is it https?", reason);
    return verdict != X509_V_OK || reason;
}

static int fail_request(struct tmk_http_get *h, struct evhttp_connection *connection,
                        struct tmk_error *err)
{
    if (h->is_late)
        return tmk_fail(err, TMK_EIO, "no whole answer in %d s; --timeout S waits longer",
                        (int)(h->timeout_s + 0.999));
    if (h->failure == EVREQ_HTTP_DATA_TOO_LONG)
        return tmk_fail(err, TMK_EIO, "the answer is larger than %d MiB; --job NAME asks for less",
                        (int)(h->body_most >> 20));
    if (h->failure == EVREQ_HTTP_INVALID_HEADER)
        return tmk_fail(err, TMK_EIO, "what answers does not speak HTTP");
    if (fail_by_tls(connection, err))
        return TMK_EIO;
    return tmk_fail(err, TMK_EIO, "the connection ended before the answer did");
}

static struct evhttp_request *make_get(struct tmk_http_get *h)
{
    struct evhttp_request *request = evhttp_request_new(on_get_answer, h);
    if (!request)
        return NULL;
    evhttp_request_set_error_cb(request, on_failure);
    tmk_http_target_add_headers(&h->target, request, "tidemark-fleet");
    if (h->authorization[0])
        evhttp_add_header(evhttp_request_get_output_headers(request), "Authorization",
                          h->authorization);
    return request;
}

static int get_over(struct tmk_http_get *h, struct evhttp_connection *connection,
                    const char *target, struct tmk_error *err)
{
    struct evhttp_request *request = make_get(h);
    struct event *late = evtimer_new(h->base, on_late, h);
    double seconds = floor(h->timeout_s);
    struct timeval limit = {.tv_sec = (time_t)seconds,
                            .tv_usec = (suseconds_t)((h->timeout_s - seconds) * 1e6)};
    evhttp_connection_set_max_body_size(connection, (ev_ssize_t)h->body_most);
    evhttp_connection_set_max_headers_size(connection, HEAD_MOST);
    evhttp_connection_set_timeout(connection, (int)h->timeout_s + 1);
    h->is_done = h->is_late = false;
    h->failure = -1;
    if (request && late && evtimer_add(late, &limit) == 0 &&
        evhttp_make_request(connection, request, EVHTTP_REQ_GET, target) == 0)
        while (!h->is_done && event_base_loop(h->base, 0) == 0)
            continue;
    if (late)
        event_free(late);
    return h->answer->owner ? 0 : fail_request(h, connection, err);
}

int tmk_http_get(struct tmk_http_get *h, const char *what, struct tmk_http_get_answer *ret,
                 struct tmk_error *err)
{
    char target[TARGET_BYTES];
    *ret = (struct tmk_http_get_answer){.status = 0};
    int n = snprintf(target, sizeof target, "%s%s", h->target.path, what);
    if (n < 0 || (size_t)n >= sizeof target)
        return tmk_fail(err, TMK_EIO, "the question is too long");
    int rc = h->address[0] ? 0 : find_address(h, err);
    if (rc < 0)
        return rc;
    struct evhttp_connection *connection =
        tmk_http_target_connect(&h->target, h->base, NULL, h->address);
    if (!connection)
        return tmk_fail(err, TMK_ENOMEM, "out of memory");
    h->answer = ret;
    rc = get_over(h, connection, target, err);
    evhttp_connection_free(connection);
    if (rc < 0)
        h->address[0] = '\0'; /* look again: it may be somewhere else now */
    return rc;
}

void tmk_http_get_answer_fini(struct tmk_http_get_answer *answer)
{
    if (answer->owner)
        evbuffer_free(answer->owner);
    *answer = (struct tmk_http_get_answer){.status = 0};
}
