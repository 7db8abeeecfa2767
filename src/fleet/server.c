/* SPDX-License-Identifier: MIT */
/* fleet/server.c - see server.h.
 *
 * A connection goes round: READING a head, ASKING whether it may (when passwords are needed),
 * WRITING the answer, and READING again; or STREAMING until it is closed; or LINGERING, when it is
 * to be closed: what the client still sends is thrown away for a moment, since closing at once
 * would make the kernel drop the answer too. Each state has one deadline, which data does not push
 * back. */
#include "fleet/server.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netdb.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/hash.h"
#include "fleet/http_auth.h"
#include "fleet/tls.h"
#include "fleet/web_config.h"

enum { STREAM_MOST = 64 << 10 }; /* bytes that a stream may be behind */
enum { LINGER_S = 2, BACKLOG = 512, LISTEN_PAUSE_S = 1, HOST_BYTES = 256 };

enum connection_state { READING, ASKING, WRITING, STREAMING, LINGERING };

struct connection {
    TAILQ_ENTRY(connection) link;
    struct tmk_server *server;
    struct bufferevent *bev;
    struct event *deadline;
    enum connection_state state;
    bool has_answered; /* so an empty input is an idle connection */
    bool closes;       /* after the answer */
    char *body;        /* of the request; NULL: none */
    size_t n_wanted;   /* bytes to wait for before looking again */
    struct tmk_http_request request;
};

static const int counted_codes[] = {200, 400, 401, 404, 405, 408, 413, 414, 431, 500, 503, 505};

enum refused { REFUSED_BUSY, REFUSED_SLOW, REFUSED_LARGE, REFUSED_MALFORMED, N_REFUSED };

struct tmk_server {
    struct tmk_server_settings settings;
    struct event_base *base;
    struct evconnlistener *listener;
    struct event *pause, *checked; /* may be NULL */
    struct tmk_http_auth *auth;
    struct tmk_web_config config;
    uint64_t config_version;
    SSL_CTX *tls; /* NULL: none */
    struct sockaddr_storage address;
    unsigned n_connections;
    TAILQ_HEAD(connection_list, connection)
    connections; /* those that were active last stand last */
    struct tmk_node_count requests[TMK_N(counted_codes)], refused[N_REFUSED];
    char code_texts[TMK_N(counted_codes)][4];
};

static void serve_input(struct connection *c);

/* ---- configuration ---- */

static uint64_t mix_file(uint64_t hash, const char *path)
{
    struct stat st = {0};
    if (!path[0] || stat(path, &st) < 0)
        return tmk_hash_mix(hash, 0);
    hash = tmk_hash_mix(hash, (uint64_t)st.st_ino);
    hash = tmk_hash_mix(hash, (uint64_t)st.st_size);
    return tmk_hash_mix(hash,
                        (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec);
}

/* Changes when one of the files does: a certificate may be renewed at any time. */
static uint64_t version_of_config(const struct tmk_server *s)
{
    uint64_t hash = mix_file(1, s->settings.web_config);
    hash = mix_file(hash, s->config.cert_file);
    hash = mix_file(hash, s->config.key_file);
    return mix_file(hash, s->config.client_ca_file);
}

static int load_config(struct tmk_server *s, struct tmk_error *err)
{
    struct tmk_web_config config;
    struct tmk_error inner = {0};
    SSL_CTX *tls = NULL;
    int rc = tmk_web_config_read(s->settings.web_config, &config, &inner);
    if (rc == 0 && config.has_tls)
        rc = tmk_tls_server(&config, &tls, &inner);
    if (rc < 0)
        return tmk_fail(err, TMK_EINVAL, "%s: %s", s->settings.web_config, inner.text);
    SSL_CTX_free(s->tls); /* connections that are open have their own reference */
    s->tls = tls;
    s->config = config;
    s->config_version = version_of_config(s);
    return 0;
}

/* What does not work is said once, and the listener goes on as it was. */
static void reload_config(struct tmk_server *s)
{
    struct tmk_error err = {0};
    uint64_t version = s->settings.web_config ? version_of_config(s) : s->config_version;
    if (version == s->config_version)
        return;
    if (load_config(s, &err) < 0) {
        s->config_version = version;
        s->settings.say(err.text);
    }
}

/* ---- counts ---- */

static void count_status(struct tmk_server *s, int status)
{
    for (size_t i = 0; i < TMK_N(counted_codes); i++)
        s->requests[i].n += counted_codes[i] == status;
    if (status == 413 || status == 414 || status == 431)
        s->refused[REFUSED_LARGE].n++;
    if (status == 400 || status == 505)
        s->refused[REFUSED_MALFORMED].n++;
}

/* ---- one connection ---- */

static void close_connection(struct connection *c)
{
    struct tmk_server *s = c->server;
    TAILQ_REMOVE(&s->connections, c, link);
    s->n_connections--;
    event_free(c->deadline);
    bufferevent_free(c->bev);
    free(c->body);
    free(c);
}

static void set_deadline(struct connection *c, int seconds)
{
    struct timeval time = {.tv_sec = seconds};
    event_add(c->deadline, &time);
}

static void enter_state(struct connection *c, enum connection_state state, int seconds)
{
    c->state = state;
    set_deadline(c, seconds);
    TAILQ_REMOVE(&c->server->connections, c, link);
    TAILQ_INSERT_TAIL(&c->server->connections, c, link);
}

/* A stream has no length and no deadline; its client says no more. */
static void begin_stream(struct connection *c, const struct tmk_http_answer *a)
{
    struct evbuffer *out = bufferevent_get_output(c->bev);
    evbuffer_add_printf(out, "%sConnection: close\r\n\r\n", a->fields ? a->fields : "");
    evbuffer_add(out, a->body, a->n_bytes);
    enter_state(c, STREAMING, TMK_SERVER_IDLE_S);
    event_del(c->deadline);
    bufferevent_enable(c->bev, EV_READ); /* to see that it has gone */
}

static void write_fields(struct connection *c, const struct tmk_http_answer *a)
{
    struct evbuffer *out = bufferevent_get_output(c->bev);
    const char *fields = c->server->settings.fields;
    evbuffer_add_printf(out, "HTTP/1.1 %d %s\r\n", a->status, tmk_http_status_text(a->status));
    evbuffer_add_printf(out, "Content-Type: %s\r\n%s", a->content_type, fields ? fields : "");
    evbuffer_add_printf(out, "Vary: Accept\r\nX-Content-Type-Options: nosniff\r\n");
}

static void write_answer(struct connection *c, const struct tmk_http_answer *a)
{
    struct evbuffer *out = bufferevent_get_output(c->bev);
    bool is_posted = c->server->settings.body_most > 0;
    count_status(c->server, a->status);
    write_fields(c, a);
    if (a->is_stream) {
        begin_stream(c, a);
        return;
    }
    evbuffer_add_printf(out, "Content-Length: %zu\r\n%s", a->n_bytes, a->fields ? a->fields : "");
    if (a->status == 401)
        evbuffer_add_printf(out,
                            "WWW-Authenticate: Basic realm=\"tidemark\", charset=\"UTF-8\"\r\n");
    if (a->status == 405)
        evbuffer_add_printf(out, "Allow: GET, %s\r\n", is_posted ? "POST" : "HEAD");
    evbuffer_add_printf(out, "Connection: %s\r\n\r\n", c->closes ? "close" : "keep-alive");
    if (!c->request.is_head)
        evbuffer_add(out, a->body, a->n_bytes);
    bufferevent_disable(c->bev, EV_READ);
    enter_state(c, WRITING, TMK_SERVER_REQUEST_S);
}

static void write_status(struct connection *c, int status)
{
    const char *text = tmk_http_status_text(status);
    char body[64];
    int n = snprintf(body, sizeof body, "%s\n", text);
    struct tmk_http_answer a = {.status = status,
                                .content_type = "text/plain; charset=utf-8",
                                .body = body,
                                .n_bytes = (size_t)n};
    write_answer(c, &a);
}

/* Whether one more stream is one too many. */
static bool has_streams(const struct tmk_server *s)
{
    const struct connection *c = NULL;
    unsigned n = 0;
    TAILQ_FOREACH(c, &s->connections, link)
    {
        n += c->state == STREAMING;
    }
    return n >= TMK_SERVER_STREAMS;
}

static void serve_request(struct connection *c)
{
    struct tmk_server *s = c->server;
    bool is_guarded = s->config.n_users > 0 && !s->settings.is_public(c->request.path);
    enum tmk_auth auth = is_guarded
                             ? tmk_http_auth_ask(s->auth, &s->config, c->request.authorization)
                             : TMK_AUTH_GRANTED;
    struct tmk_http_answer a = {.status = 500};
    if (auth == TMK_AUTH_BUSY) {
        if (c->state != ASKING)
            enter_state(c, ASKING, TMK_SERVER_REQUEST_S);
        return;
    }
    if (auth == TMK_AUTH_REFUSED) {
        write_status(c, 401);
        return;
    }
    c->request.body = c->body;
    s->settings.answer(s->settings.arg, &c->request, &a);
    if (a.status == 0) {
        if (c->state != ASKING)
            enter_state(c, ASKING, TMK_SERVER_THINKING_S);
        return;
    }
    if (a.is_stream && has_streams(s))
        write_status(c, 503);
    else if (a.body)
        write_answer(c, &a);
    else
        write_status(c, a.status);
}

/* Take the body, which has come. False: there is no memory for it. */
static bool take_body(struct connection *c, struct evbuffer *in)
{
    size_t n = c->request.n_body;
    free(c->body);
    c->body = n > 0 ? calloc(1, n + 1) : NULL;
    if (n > 0 && (!c->body || evbuffer_remove(in, c->body, n) != (int)n))
        return false;
    return true;
}

static int parse_head(const struct connection *c, const char *bytes, size_t n,
                      struct tmk_http_request *ret, size_t *ret_used)
{
    size_t most = c->server->settings.body_most;
    return most > 0 ? tmk_http_request_parse_post(bytes, n, most, ret, ret_used)
                    : tmk_http_request_parse(bytes, n, ret, ret_used);
}

/* Look at what has come. */
static void serve_input(struct connection *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    size_t n_all = evbuffer_get_length(in), n = n_all, used = 0;
    if (n_all < c->n_wanted)
        return;
    n = n < TMK_HTTP_HEAD_MOST ? n : TMK_HTTP_HEAD_MOST;
    const char *bytes = n ? (const char *)evbuffer_pullup(in, (ev_ssize_t)n) : NULL;
    int status = bytes ? parse_head(c, bytes, n, &c->request, &used) : 0;
    if (status == 0) {
        if (n > 0 && c->has_answered) { /* no longer idle: a request has begun */
            c->has_answered = false;
            set_deadline(c, TMK_SERVER_REQUEST_S);
        }
        return;
    }
    if (status == 200 && n_all - used < c->request.n_body) {
        c->n_wanted = used + c->request.n_body;
        if (c->has_answered) {
            c->has_answered = false;
            set_deadline(c, TMK_SERVER_REQUEST_S);
        }
        return;
    }
    c->n_wanted = 0;
    c->closes = status != 200 || !c->request.keeps_alive;
    bufferevent_disable(c->bev, EV_READ);
    if (status != 200) {
        write_status(c, status);
        return;
    }
    evbuffer_drain(in, used);
    if (take_body(c, in))
        serve_request(c);
    else
        write_status(c, 500);
}

static void on_readable(struct bufferevent *bev, void *arg)
{
    struct connection *c = arg;
    struct evbuffer *in = bufferevent_get_input(bev);
    if (c->state == LINGERING || c->state == STREAMING)
        evbuffer_drain(in, evbuffer_get_length(in));
    else if (c->state == READING)
        serve_input(c);
}

static void linger(struct connection *c)
{
    SSL *ssl = bufferevent_openssl_get_ssl(c->bev);
    if (ssl)
        SSL_shutdown(ssl);
    shutdown(bufferevent_getfd(c->bev), SHUT_WR);
    enter_state(c, LINGERING, LINGER_S);
    bufferevent_enable(c->bev, EV_READ);
}

/* The answer is written: all of it is the kernel's. */
static void on_written(struct bufferevent *bev, void *arg)
{
    struct connection *c = arg;
    if (c->state != WRITING)
        return;
    if (c->closes) {
        linger(c);
        return;
    }
    c->has_answered = true;
    enter_state(c, READING, TMK_SERVER_IDLE_S);
    bufferevent_enable(bev, EV_READ);
    if (evbuffer_get_length(bufferevent_get_input(bev)) > 0)
        serve_input(c);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    (void)bev;
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
        close_connection(arg);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct connection *c = arg;
    bool is_slow = (c->state == READING && !c->has_answered) || c->state == WRITING;
    c->server->refused[REFUSED_SLOW].n += is_slow;
    close_connection(c);
}

/* ---- accepting ---- */

/* The connection to close for a new one: the one that has been idle for longest, else the one that
 * has been at its request for longest. NULL: all are being answered. */
static struct connection *dispensable(const struct tmk_server *s)
{
    struct connection *c = NULL, *found = NULL;
    TAILQ_FOREACH(c, &s->connections, link)
    {
        if (c->state == LINGERING || (c->state == READING && c->has_answered))
            return c;
        if (c->state == READING && !found)
            found = c;
    }
    return found;
}

/* So a crowd that says nothing does not keep a client out that sends its request at once. */
static bool make_room(struct tmk_server *s)
{
    if (s->n_connections < TMK_SERVER_CONNECTIONS)
        return true;
    struct connection *c = dispensable(s);
    bool is_idle = c && (c->state == LINGERING || c->has_answered);
    s->refused[REFUSED_BUSY].n += !is_idle;
    if (c)
        close_connection(c);
    return c != NULL;
}

static struct bufferevent *make_bufferevent(struct tmk_server *s, evutil_socket_t fd)
{
    if (!s->tls)
        return bufferevent_socket_new(s->base, fd, BEV_OPT_CLOSE_ON_FREE);
    SSL *ssl = SSL_new(s->tls);
    struct bufferevent *bev =
        ssl ? bufferevent_openssl_socket_new(s->base, fd, ssl, BUFFEREVENT_SSL_ACCEPTING,
                                             BEV_OPT_CLOSE_ON_FREE)
            : NULL;
    if (ssl && !bev)
        SSL_free(ssl);
    if (bev) /* a client that closes without TLS's goodbye has closed all the same */
        bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
    return bev;
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
                      int length, void *arg)
{
    (void)listener;
    (void)address;
    (void)length;
    struct tmk_server *s = arg;
    reload_config(s);
    struct connection *c = make_room(s) ? calloc(1, sizeof *c) : NULL;
    struct bufferevent *bev = c ? make_bufferevent(s, fd) : NULL;
    struct event *deadline = bev ? evtimer_new(s->base, on_deadline, c) : NULL;
    if (!deadline) {
        if (bev)
            bufferevent_free(bev);
        else
            close(fd);
        free(c);
        return;
    }
    c->server = s;
    c->bev = bev;
    c->deadline = deadline;
    TAILQ_INSERT_TAIL(&s->connections, c, link);
    s->n_connections++;
    bufferevent_setcb(bev, on_readable, on_written, on_event, c);
    bufferevent_setwatermark(bev, EV_READ, 0, TMK_HTTP_HEAD_MOST + s->settings.body_most);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
    set_deadline(c, TMK_SERVER_REQUEST_S);
}

static void on_pause_over(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct tmk_server *s = arg;
    evconnlistener_enable(s->listener);
}

/* Without descriptors accept() fails again at once: try later. */
static void on_accept_error(struct evconnlistener *listener, void *arg)
{
    struct tmk_server *s = arg;
    struct timeval time = {.tv_sec = LISTEN_PAUSE_S};
    evconnlistener_disable(listener);
    event_add(s->pause, &time);
}

void tmk_server_ask_again(struct tmk_server *s)
{
    struct connection *c, *next;
    for (c = TAILQ_FIRST(&s->connections); c; c = next) {
        next = TAILQ_NEXT(c, link);
        if (c->state == ASKING)
            serve_request(c);
    }
}

void tmk_server_push(struct tmk_server *s, const char *text, size_t n)
{
    struct connection *c, *next;
    for (c = TAILQ_FIRST(&s->connections); c; c = next) {
        next = TAILQ_NEXT(c, link);
        if (c->state != STREAMING)
            continue;
        if (evbuffer_get_length(bufferevent_get_output(c->bev)) > STREAM_MOST)
            close_connection(c);
        else
            bufferevent_write(c->bev, text, n);
    }
}

static void on_checked(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct tmk_server *s = arg;
    tmk_http_auth_take(s->auth);
    tmk_server_ask_again(s);
}

/* ---- listening ---- */

/* Split "HOST:PORT"; host "" means everywhere, and a port alone this machine. */
static bool split_address(const char *listen, char host[HOST_BYTES], const char **ret_port)
{
    const char *colon = strrchr(listen, ':');
    size_t n = colon ? (size_t)(colon - listen) : 0;
    const char *port = colon ? colon + 1 : listen;
    size_t digits = strspn(port, "0123456789");
    if (digits == 0 || digits > 5 || port[digits] || strtoul(port, NULL, 10) > 65535)
        return false;
    *ret_port = port;
    if (!colon) {
        strcpy(host, "127.0.0.1");
        return true;
    }
    if (n >= 2 && listen[0] == '[' && listen[n - 1] == ']') {
        listen++;
        n -= 2;
    } else if (memchr(listen, ':', n)) {
        return false;
    }
    if (n >= HOST_BYTES)
        return false;
    memcpy(host, listen, n);
    host[n] = '\0';
    return true;
}

static struct evconnlistener *bind_to(struct tmk_server *s, const struct addrinfo *a)
{
    return evconnlistener_new_bind(
        s->base, on_accept, s, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE,
        BACKLOG, a->ai_addr, (int)a->ai_addrlen);
}

/* Everywhere is "::", which takes IPv4 too, or without IPv6 "0.0.0.0". */
static int listen_at(struct tmk_server *s, struct tmk_error *err)
{
    char host[HOST_BYTES];
    const char *port;
    const char *names[] = {host, NULL};
    if (!split_address(s->settings.listen, host, &port))
        return tmk_fail(err, TMK_EINVAL, "'%s' is not HOST:PORT, such as 127.0.0.1:9742",
                        s->settings.listen);
    if (!host[0]) {
        names[0] = "::";
        names[1] = "0.0.0.0";
    }
    int reason = 0;
    for (size_t i = 0; i < TMK_N(names) && names[i] && !s->listener; i++) {
        struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM};
        struct addrinfo *list = NULL;
        int rc = getaddrinfo(names[i], port, &hints, &list);
        if (rc != 0)
            return tmk_fail(err, TMK_EINVAL, "%s: %s", names[i], gai_strerror(rc));
        for (const struct addrinfo *a = list; a && !s->listener; a = a->ai_next) {
            s->listener = bind_to(s, a);
            reason = errno;
        }
        freeaddrinfo(list);
    }
    if (!s->listener)
        return tmk_fail_os(err, TMK_EIO, reason, "cannot listen on %s", s->settings.listen);
    socklen_t length = sizeof s->address;
    getsockname(evconnlistener_get_fd(s->listener), (struct sockaddr *)&s->address, &length);
    evconnlistener_set_error_cb(s->listener, on_accept_error);
    return 0;
}

/* ---- open, close ---- */

static void name_counts(struct tmk_server *s)
{
    static const char *const reasons[] = {[REFUSED_BUSY] = "busy",
                                          [REFUSED_SLOW] = "slow",
                                          [REFUSED_LARGE] = "large",
                                          [REFUSED_MALFORMED] = "malformed"};
    for (size_t i = 0; i < TMK_N(counted_codes); i++) {
        snprintf(s->code_texts[i], sizeof s->code_texts[i], "%u",
                 (unsigned)counted_codes[i] % 1000u);
        s->requests[i].label = s->code_texts[i];
    }
    for (size_t i = 0; i < N_REFUSED; i++)
        s->refused[i].label = reasons[i];
}

static int open_parts(struct tmk_server *s, struct tmk_error *err)
{
    int rc = s->settings.web_config ? load_config(s, err) : 0;
    if (rc == 0)
        rc = tmk_http_auth_open(&s->auth, err);
    if (rc < 0)
        return rc;
    s->pause = evtimer_new(s->base, on_pause_over, s);
    s->checked = event_new(s->base, tmk_http_auth_fd(s->auth), EV_READ | EV_PERSIST, on_checked, s);
    if (!s->pause || !s->checked || event_add(s->checked, NULL) < 0)
        return tmk_fail(err, TMK_ENOMEM, "out of memory");
    return listen_at(s, err);
}

int tmk_server_open(struct event_base *base, const struct tmk_server_settings *settings,
                    struct tmk_server **ret_server, struct tmk_error *err)
{
    struct tmk_server *s = calloc(1, sizeof *s);
    if (!s)
        return tmk_fail(err, TMK_ENOMEM, "out of memory");
    s->base = base;
    s->settings = *settings;
    TAILQ_INIT(&s->connections);
    name_counts(s);
    int rc = open_parts(s, err);
    if (rc < 0) {
        tmk_server_close(s);
        return rc;
    }
    *ret_server = s;
    return 0;
}

struct tmk_server *tmk_server_close(struct tmk_server *s)
{
    if (!s)
        return NULL;
    if (s->listener)
        evconnlistener_free(s->listener);
    struct connection *c;
    while ((c = TAILQ_FIRST(&s->connections)) != NULL) /* closing takes it off the list */
        close_connection(c);                           /* NOLINT(clang-analyzer-unix.Malloc) */
    if (s->pause)
        event_free(s->pause);
    if (s->checked)
        event_free(s->checked);
    tmk_http_auth_close(s->auth);
    SSL_CTX_free(s->tls);
    free(s);
    return NULL;
}

/* ---- asking ---- */

const char *tmk_server_url(const struct tmk_server *s, char *buffer)
{
    char host[NI_MAXHOST > 64 ? 64 : NI_MAXHOST] = "?", port[8] = "?";
    getnameinfo((const struct sockaddr *)&s->address, sizeof s->address, host, sizeof host, port,
                sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    bool is_6 = s->address.ss_family == AF_INET6;
    snprintf(buffer, TMK_SERVER_URL_BYTES, "%s://%s%.60s%s:%s", s->tls ? "https" : "http",
             is_6 ? "[" : "", host, is_6 ? "]" : "", port);
    return buffer;
}

unsigned tmk_server_port(const struct tmk_server *s)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&s->address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&s->address;
    return ntohs(s->address.ss_family == AF_INET ? v4->sin_port : v6->sin6_port);
}

bool tmk_server_is_open_to_all(const struct tmk_server *s)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&s->address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&s->address;
    bool is_loopback = s->address.ss_family == AF_INET ? ntohl(v4->sin_addr.s_addr) >> 24 == 127
                                                       : IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) != 0;
    bool is_guarded = s->config.n_users > 0 || s->config.client_auth == TMK_CLIENT_AUTH_REQUIRE;
    return !is_loopback && !is_guarded;
}

const struct tmk_node_count *tmk_server_requests(const struct tmk_server *s, unsigned *ret_n)
{
    *ret_n = TMK_N(counted_codes);
    return s->requests;
}

const struct tmk_node_count *tmk_server_refused(const struct tmk_server *s, unsigned *ret_n)
{
    *ret_n = N_REFUSED;
    return s->refused;
}
