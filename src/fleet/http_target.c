/* SPDX-License-Identifier: MIT */
/* fleet/http_target.c - see http_target.h. */
#include "fleet/http_target.h"

#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/http.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "fleet/tls.h"

enum { HTTP_PORT = 80, HTTPS_PORT = 443 };

/* ---- settings ---- */

static bool is_header_text(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || (unsigned char)*text == 0x7f)
            return false;
    return true;
}

int tmk_http_target_take_headers(struct tmk_http_target *t, const char *headers, const char *what,
                                 struct tmk_error *err)
{
    char *rest = t->header_text, *part;
    if (strlen(headers) >= sizeof t->header_text || !is_header_text(headers))
        return tmk_fail(err, TMK_EINVAL, "the headers for %s are too long or no text", what);
    strcpy(t->header_text, headers);
    while ((part = strsep(&rest, ",")) != NULL) {
        part += strspn(part, " ");
        char *equals = strchr(part, '=');
        if (!*part)
            continue;
        if (!equals || equals == part || t->n_headers == TMK_HTTP_HEADERS_MOST)
            return tmk_fail(err, TMK_EINVAL, "the headers for %s are not key=value,key=value",
                            what);
        *equals = '\0';
        t->keys[t->n_headers] = part;
        t->values[t->n_headers++] = equals + 1;
    }
    return 0;
}

static int take_path(struct tmk_http_target *t, const char *path, struct tmk_error *err)
{
    size_t n = path ? strlen(path) : 0;
    while (n > 0 && path[n - 1] == '/')
        n--;
    if (n >= sizeof t->path)
        return tmk_fail(err, TMK_EINVAL, "it is too long");
    snprintf(t->path, sizeof t->path, "%.*s", (int)n, path ? path : "");
    return 0;
}

static int take_uri(struct tmk_http_target *t, const struct evhttp_uri *uri, const char *ca_file,
                    struct tmk_error *err)
{
    const char *scheme = evhttp_uri_get_scheme(uri), *host = evhttp_uri_get_host(uri);
    bool is_tls = scheme && strcasecmp(scheme, "https") == 0;
    if (!host || !*host || strlen(host) >= sizeof t->host || !scheme ||
        (!is_tls && strcasecmp(scheme, "http") != 0))
        return tmk_fail(err, TMK_EINVAL, "it is not http://HOST:PORT or https://HOST:PORT");
    if (evhttp_uri_get_userinfo(uri))
        return tmk_fail(err, TMK_EINVAL, "a URL with a password is not taken: others can see it");
    int port = evhttp_uri_get_port(uri), usual = is_tls ? HTTPS_PORT : HTTP_PORT;
    size_t bracket = host[0] == '[';
    snprintf(t->host, sizeof t->host, "%.*s", (int)(strlen(host) - 2 * bracket), host + bracket);
    t->port = (uint16_t)(port > 0 ? port : usual);
    if (t->port == usual)
        snprintf(t->authority, sizeof t->authority, "%s", host);
    else
        snprintf(t->authority, sizeof t->authority, "%s:%d", host, t->port);
    int rc = take_path(t, evhttp_uri_get_path(uri), err);
    return rc == 0 && is_tls ? tmk_tls_client(ca_file, &t->tls, err) : rc;
}

int tmk_http_target_init(struct tmk_http_target *t, const char *url, const char *ca_file,
                         struct tmk_error *err)
{
    struct tmk_error inner = {0};
    struct evhttp_uri *uri = evhttp_uri_parse(url);
    *t = (struct tmk_http_target){.port = 0};
    int rc = uri ? take_uri(t, uri, ca_file, &inner)
                 : tmk_fail(&inner, TMK_EINVAL, "it is no URL, such as http://HOST:PORT");
    /* What may have a password is not repeated. */
    bool is_secret = uri && evhttp_uri_get_userinfo(uri);
    if (uri)
        evhttp_uri_free(uri);
    return rc == 0 ? 0 : tmk_fail(err, rc, "'%s': %s", is_secret ? "…" : url, inner.text);
}

void tmk_http_target_fini(struct tmk_http_target *t)
{
    SSL_CTX_free(t->tls);
    t->tls = NULL;
}

/* ---- connections ---- */

static struct bufferevent *make_client(const struct tmk_http_target *t, struct event_base *base)
{
    if (!t->tls)
        return bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    SSL *ssl = SSL_new(t->tls);
    if (!ssl)
        return NULL;
    SSL_set_tlsext_host_name(ssl, t->host);
    SSL_set1_host(ssl, t->host);
    struct bufferevent *bev = bufferevent_openssl_socket_new(
        base, -1, ssl, BUFFEREVENT_SSL_CONNECTING, BEV_OPT_CLOSE_ON_FREE);
    if (!bev)
        SSL_free(ssl);
    else
        bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
    return bev;
}

struct evhttp_connection *tmk_http_target_connect(const struct tmk_http_target *t,
                                                  struct event_base *base, struct evdns_base *dns,
                                                  const char *address)
{
    struct bufferevent *bev = make_client(t, base);
    struct evhttp_connection *connection =
        bev ? evhttp_connection_base_bufferevent_new(base, dns, bev, address ? address : t->host,
                                                     t->port)
            : NULL;
    if (!connection && bev)
        bufferevent_free(bev);
    return connection;
}

void tmk_http_target_add_headers(const struct tmk_http_target *t, struct evhttp_request *request,
                                 const char *agent)
{
    struct evkeyvalq *fields = evhttp_request_get_output_headers(request);
    evhttp_add_header(fields, "Host", t->authority);
    evhttp_add_header(fields, "User-Agent", agent);
    evhttp_add_header(fields, "Connection", "close");
    for (unsigned i = 0; i < t->n_headers; i++)
        evhttp_add_header(fields, t->keys[i], t->values[i]);
}
