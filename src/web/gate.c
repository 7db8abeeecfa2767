/* SPDX-License-Identifier: MIT */
/* web/gate.c - see gate.h. */
#include "web/gate.h"

#include <arpa/inet.h>
#include <openssl/crypto.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "web/url_query.h"

enum { RANDOM_BYTES = 16, HOST_ROOM = 256, COOKIE_NAME_BYTES = 24 };

static bool make_secret(char secret[TMK_GATE_SECRET_BYTES])
{
    uint8_t bytes[RANDOM_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (unsigned i = 0; i < RANDOM_BYTES; i++)
        snprintf(secret + 2 * (size_t)i, 3, "%02x", bytes[i]);
    return true;
}

/* Letters, digits and what else stands in paths, so that it can be put into a field. */
static bool take_base_path(struct tmk_page_gate *g, const char *path)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "/-_.~%@+:";
    size_t n = path ? strlen(path) : 0;
    if (n == 0)
        path = "/", n = 1;
    if (path[0] != '/' || n + 2 > sizeof g->base_path || strspn(path, allowed) != n)
        return false;
    memcpy(g->base_path, path, n + 1);
    if (path[n - 1] != '/')
        memcpy(g->base_path + n, "/", 2);
    return true;
}

bool tmk_gate_init(struct tmk_page_gate *g, const char *base_path, const char *host)
{
    *g = (struct tmk_page_gate){.host = host};
    return take_base_path(g, base_path) && make_secret(g->token) && make_secret(g->cookie);
}

static bool is_secret(const char *secret, const char *text, size_t n)
{
    return n == TMK_GATE_SECRET_BYTES - 1 && CRYPTO_memcmp(secret, text, n) == 0;
}

static const char *cookie_name(const struct tmk_page_gate *g, char name[COOKIE_NAME_BYTES])
{
    snprintf(name, COOKIE_NAME_BYTES, "tidemark-%u", g->port);
    return name;
}

static bool has_cookie(const struct tmk_page_gate *g, const char *cookies)
{
    char name[COOKIE_NAME_BYTES];
    size_t n_name = strlen(cookie_name(g, name));
    while (*cookies) {
        cookies += strspn(cookies, "; ");
        size_t n = strcspn(cookies, ";");
        if (n > n_name && strncmp(cookies, name, n_name) == 0 && cookies[n_name] == '=' &&
            is_secret(g->cookie, cookies + n_name + 1, n - n_name - 1))
            return true;
        cookies += n;
    }
    return false;
}

/* Take the port off; false: there is no name. */
static bool split_host(const char *field, char host[HOST_ROOM])
{
    const char *end = field[0] == '[' ? strchr(field, ']') : strchr(field, ':');
    size_t skip = field[0] == '[', n = end ? (size_t)(end - field) : strlen(field);
    if ((skip && !end) || n <= skip || n - skip >= HOST_ROOM)
        return false;
    memcpy(host, field + skip, n - skip);
    host[n - skip] = '\0';
    return true;
}

/* An address is no name that anybody could have rebound. */
static bool is_known_host(const struct tmk_page_gate *g, const char *field)
{
    char host[HOST_ROOM];
    unsigned char address[sizeof(struct in6_addr)];
    if (!split_host(field, host))
        return false;
    return strcasecmp(host, "localhost") == 0 || inet_pton(AF_INET, host, address) == 1 ||
           inet_pton(AF_INET6, host, address) == 1 || (g->host && strcasecmp(host, g->host) == 0);
}

const char *tmk_gate_path(const struct tmk_page_gate *g, const char *path)
{
    size_t n = strlen(g->base_path);
    return strncmp(path, g->base_path, n) == 0 ? path + n - 1 : path;
}

enum tmk_gate_result tmk_gate_check(const struct tmk_page_gate *g, const struct tmk_http_request *r)
{
    char token[64];
    if (!is_known_host(g, r->host))
        return TMK_GATE_WRONG_HOST;
    if (!r->is_post && strcmp(tmk_gate_path(g, r->path), "/") == 0 &&
        tmk_url_query_text(r->query, "token", token, sizeof token) &&
        is_secret(g->token, token, strlen(token)))
        return TMK_GATE_ENTERED;
    return has_cookie(g, r->cookie) ? TMK_GATE_GRANTED : TMK_GATE_FORBIDDEN;
}

const char *tmk_gate_entry_fields(const struct tmk_page_gate *g, char buffer[TMK_GATE_FIELDS_BYTES])
{
    char name[COOKIE_NAME_BYTES];
    snprintf(buffer, TMK_GATE_FIELDS_BYTES,
             "Location: ./\r\nSet-Cookie: %s=%s; HttpOnly; SameSite=Strict; Path=%s\r\n",
             cookie_name(g, name), g->cookie, g->base_path);
    return buffer;
}
