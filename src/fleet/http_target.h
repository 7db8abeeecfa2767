/* SPDX-License-Identifier: MIT */
/* fleet/http_target.h - a server that we ask or send to, by its URL: libevent's connections to it,
 * plain or with TLS, and the headers of each request. */
#ifndef TMK_FLEET_HTTP_TARGET_H
#define TMK_FLEET_HTTP_TARGET_H

#include <openssl/types.h>
#include <stdint.h>

#include "base/error.h"

struct event_base;
struct evdns_base;
struct evhttp_connection;
struct evhttp_request;

enum { TMK_HTTP_HEADERS_MOST = 16, TMK_HTTP_PATH_BYTES = 1024, TMK_HTTP_HOST_BYTES = 256 };

struct tmk_http_target {
    char host[TMK_HTTP_HOST_BYTES];          /* without the brackets of an IPv6 address */
    char authority[TMK_HTTP_HOST_BYTES + 8]; /* for the header Host */
    char path[TMK_HTTP_PATH_BYTES];          /* without a slash at its end; may be empty */
    uint16_t port;
    SSL_CTX *tls; /* NULL: http */
    char header_text[4096];
    const char *keys[TMK_HTTP_HEADERS_MOST], *values[TMK_HTTP_HEADERS_MOST];
    unsigned n_headers;
};

/* Take "http://HOST:PORT/PATH" or "https://…" apart. `ca_file` has the authorities for https; NULL:
 * the system's. 0, or TMK_EINVAL with what is wrong with it. */
int tmk_http_target_init(struct tmk_http_target *t, const char *url, const char *ca_file,
                         struct tmk_error *err);
void tmk_http_target_fini(struct tmk_http_target *t);

/* Take "key=value,key=value", as in OTEL_EXPORTER_OTLP_HEADERS. `what` names it in the message.
 * Once a target. 0 or TMK_EINVAL. */
int tmk_http_target_take_headers(struct tmk_http_target *t, const char *headers, const char *what,
                                 struct tmk_error *err);

/* Make a connection, which connects with its first request. `dns` NULL: names are resolved by the
 * system, which waits. `address` NULL: that of the host's name. NULL: out of memory. Free it with
 * evhttp_connection_free(), not in its own callback. libevent cannot use one with TLS again. */
struct evhttp_connection *tmk_http_target_connect(const struct tmk_http_target *t,
                                                  struct event_base *base, struct evdns_base *dns,
                                                  const char *address);
/* Add Host, User-Agent, "Connection: close" and the headers that were taken. */
void tmk_http_target_add_headers(const struct tmk_http_target *t, struct evhttp_request *request,
                                 const char *agent);

#endif
