/* SPDX-License-Identifier: MIT */
/* fleet/server.h - a small HTTP server on libevent: GET and HEAD (for a page: GET and POST), TLS
 * and passwords from a web_config.h file, and a limit on everything.
 *
 * Limits: connections at once (an idle or a slow one makes room for a new one), the size of a
 * request's head (TMK_HTTP_HEAD_MOST), and the time from the connection or the last answer to a
 * complete request, and from there to the last byte of the answer. So a client that is slow costs
 * one place for as long as that and no longer. Streams of events last; there are few of them, and
 * one that does not keep up is closed. */
#ifndef TMK_FLEET_SERVER_H
#define TMK_FLEET_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "fleet/http_request.h"
#include "fleet/node.h"

struct event_base;

enum { TMK_SERVER_CONNECTIONS = 64, TMK_SERVER_REQUEST_S = 10, TMK_SERVER_IDLE_S = 120 };
enum { TMK_SERVER_THINKING_S = 60, TMK_SERVER_STREAMS = 8 };

struct tmk_http_answer {
    int status; /* 0: not known yet; asked again after tmk_server_ask_again() */
    const char *content_type;
    const char *body; /* borrowed until the handler is called again */
    size_t n_bytes;
    const char *fields; /* further lines of the head, each with CR LF; NULL: none */
    bool is_stream;     /* the body is its beginning; tmk_server_push() adds to it */
};

struct tmk_server_settings {
    const char *listen;     /* "HOST:PORT", "[::1]:PORT", ":PORT" (everywhere), "PORT" (loopback) */
    const char *web_config; /* path; NULL: neither TLS nor passwords. Read again when it changes */
    void (*answer)(void *arg, const struct tmk_http_request *request, struct tmk_http_answer *ret);
    bool (*is_public)(const char *path); /* needs no password */
    size_t body_most;                    /* > 0: GET and POST with so many bytes, not HEAD */
    const char *fields;                  /* of every answer; NULL: none */
    void (*say)(const char *text);       /* a sentence for the log */
    void *arg;
};

struct tmk_server;

/* Listen. 0; TMK_EINVAL: the address or the web-config file is wrong; TMK_EIO: the address is taken
 * or not this machine's. Texts of `settings` are borrowed until close. */
int tmk_server_open(struct event_base *base, const struct tmk_server_settings *settings,
                    struct tmk_server **ret_server, struct tmk_error *err);
struct tmk_server *tmk_server_close(struct tmk_server *s); /* takes NULL */

/* Write "https://127.0.0.1:9742" into the caller's buffer of TMK_SERVER_URL_BYTES; returns it. */
enum { TMK_SERVER_URL_BYTES = 80 };
const char *tmk_server_url(const struct tmk_server *s, char *buffer);
/* Whether others than this machine can connect, and whether anything guards that. */
bool tmk_server_is_open_to_all(const struct tmk_server *s);

/* Ask the handler again for the requests that it had no answer for. */
void tmk_server_ask_again(struct tmk_server *s);
/* Write to all streams. */
void tmk_server_push(struct tmk_server *s, const char *text, size_t n);
unsigned tmk_server_port(const struct tmk_server *s);

/* What was answered and refused so far; borrowed until close. */
const struct tmk_node_count *tmk_server_requests(const struct tmk_server *s, unsigned *ret_n);
const struct tmk_node_count *tmk_server_refused(const struct tmk_server *s, unsigned *ret_n);

#endif
