/* SPDX-License-Identifier: MIT */
/* fleet/http_request.c - see http_request.h. RFC 9112, without what it lets a server tolerate. */
#include "fleet/http_request.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"

struct head_line {
    const char *text;
    size_t n;
};

struct request_head {
    struct tmk_http_request *request;
    bool has_host, is_old; /* HTTP/1.0 */
    bool has_authorization, has_accept, has_type, has_length;
    bool takes_post;
    size_t body_most;
};

const char *tmk_http_status_text(int status)
{
    static const struct {
        int status;
        const char *text;
    } texts[] = {
        {200, "OK"},
        {303, "See Other"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {411, "Length Required"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {421, "Misdirected Request"},
        {422, "Unprocessable Content"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < TMK_N(texts); i++)
        if (texts[i].status == status)
            return texts[i].text;
    return "Error";
}

/* ---- lines ---- */

/* The bytes up to CR LF; false: the line is not complete. */
static bool next_line(const char **at, const char *end, struct head_line *ret)
{
    const char *feed = memchr(*at, '\n', (size_t)(end - *at));
    if (!feed)
        return false;
    *ret = (struct head_line){*at, (size_t)(feed - *at)};
    *at = feed + 1;
    return true;
}

/* Take the CR off; false: there is none, or bytes that a line may not have. */
static bool clean_line(struct head_line *line)
{
    if (line->n == 0 || line->text[line->n - 1] != '\r')
        return false;
    line->n--;
    for (size_t i = 0; i < line->n; i++) {
        unsigned char c = (unsigned char)line->text[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

static bool is_word(const struct head_line *l, const char *word)
{
    return l->n == strlen(word) && strncasecmp(l->text, word, l->n) == 0;
}

/* ---- the request line ---- */

static int take_target(struct request_head *h, const char *target, size_t n)
{
    char *path = h->request->path;
    const char *query = memchr(target, '?', n);
    size_t length = query ? (size_t)(query - target) : n;
    if (n == 0 || target[0] != '/')
        return 400;
    if (length >= TMK_HTTP_PATH_BYTES)
        return 414;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)target[i] <= 0x20 || (unsigned char)target[i] >= 0x7f)
            return 400;
    memcpy(path, target, length);
    path[length] = '\0';
    if (!h->takes_post || !query)
        return 200;
    if (n - length > TMK_HTTP_QUERY_BYTES)
        return 414;
    memcpy(h->request->query, query + 1, n - length - 1);
    return 200;
}

static int take_version(struct request_head *h, const char *text, size_t n)
{
    if (n != 8 || memcmp(text, "HTTP/", 5) != 0 || text[6] != '.')
        return 400;
    if (text[5] != '1' || (text[7] != '0' && text[7] != '1'))
        return 505;
    h->is_old = text[7] == '0';
    h->request->keeps_alive = !h->is_old;
    return 200;
}

static int take_request_line(struct request_head *h, const struct head_line *line)
{
    const char *end = line->text + line->n;
    const char *target = memchr(line->text, ' ', line->n);
    const char *version = target ? memchr(target + 1, ' ', (size_t)(end - target - 1)) : NULL;
    if (!version || target == line->text)
        return 400;
    struct head_line method = {line->text, (size_t)(target - line->text)};
    int status = take_version(h, version + 1, (size_t)(end - version - 1));
    if (status == 200)
        status = take_target(h, target + 1, (size_t)(version - target - 1));
    h->request->is_head = method.n == 4 && memcmp(method.text, "HEAD", 4) == 0;
    bool is_get = method.n == 3 && memcmp(method.text, "GET", 3) == 0;
    if (h->takes_post && method.n == 4 && memcmp(method.text, "POST", 4) == 0)
        h->request->is_post = true;
    if (status == 200 && !is_get && !h->request->is_post && (h->takes_post || !h->request->is_head))
        return 405;
    return status;
}

/* ---- fields ---- */

static bool is_token(const char *text, size_t n)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && !(c >= '0' && c <= '9') && (c == '\0' || !strchr(others, c)))
            return false;
    }
    return n > 0;
}

static int copy_value(const struct head_line *value, char *to, size_t room, bool *has)
{
    if (*has)
        return 400;
    if (value->n >= room)
        return 431;
    memcpy(to, value->text, value->n);
    to[value->n] = '\0';
    *has = true;
    return 200;
}

/* Several fields of a name count as one list. */
static int add_value(char to[TMK_HTTP_VALUE_BYTES], const struct head_line *value, char between)
{
    size_t n = strlen(to), comma = n > 0;
    if (n + comma + value->n >= TMK_HTTP_VALUE_BYTES)
        return 431;
    if (comma)
        to[n] = between;
    memcpy(to + n + comma, value->text, value->n);
    to[n + comma + value->n] = '\0';
    return 200;
}

/* Digits, and few of them. */
static int take_length(struct request_head *h, const struct head_line *value)
{
    size_t n = 0;
    if (!h->takes_post)
        return is_word(value, "0") ? 200 : 413;
    if (h->has_length || value->n == 0)
        return 400;
    for (size_t i = 0; i < value->n; i++) {
        if (value->text[i] < '0' || value->text[i] > '9')
            return 400;
        n = n * 10 + (size_t)(value->text[i] - '0');
        if (n > h->body_most)
            return 413;
    }
    h->has_length = true;
    h->request->n_body = n;
    return n > 0 && !h->request->is_post ? 413 : 200;
}

static int take_field(struct request_head *h, const struct head_line *name,
                      const struct head_line *value)
{
    if (is_word(name, "Host")) {
        return copy_value(value, h->request->host, TMK_HTTP_PATH_BYTES, &h->has_host);
    }
    if (is_word(name, "Accept"))
        return add_value(h->request->accept, value, ',');
    if (is_word(name, "Cookie"))
        return add_value(h->request->cookie, value, ';');
    if (is_word(name, "Content-Type"))
        return copy_value(value, h->request->content_type, TMK_HTTP_PATH_BYTES, &h->has_type);
    if (is_word(name, "Authorization"))
        return copy_value(value, h->request->authorization, TMK_HTTP_VALUE_BYTES,
                          &h->has_authorization);
    if (is_word(name, "Connection")) {
        if (is_word(value, "close"))
            h->request->keeps_alive = false;
        return 200;
    }
    if (is_word(name, "Transfer-Encoding"))
        return 413;
    if (is_word(name, "Content-Length"))
        return take_length(h, value);
    return 200;
}

static int take_field_line(struct request_head *h, const struct head_line *line)
{
    const char *colon = memchr(line->text, ':', line->n);
    if (!colon || !is_token(line->text, (size_t)(colon - line->text)))
        return 400;
    struct head_line name = {line->text, (size_t)(colon - line->text)};
    struct head_line value = {colon + 1, line->n - name.n - 1};
    while (value.n > 0 && (value.text[0] == ' ' || value.text[0] == '\t')) {
        value.text++;
        value.n--;
    }
    while (value.n > 0 && (value.text[value.n - 1] == ' ' || value.text[value.n - 1] == '\t'))
        value.n--;
    return take_field(h, &name, &value);
}

/* ---- the head ---- */

static int take_head(struct request_head *h, const char *bytes, size_t n, size_t *ret_used)
{
    const char *at = bytes, *end = bytes + n;
    struct head_line line;
    bool is_first = true;
    if (n > 0 && (*bytes < 'A' || *bytes > 'z')) /* TLS, for one: it need not wait for a line */
        return 400;
    for (;;) {
        if (!next_line(&at, end, &line))
            return 0;
        if (!clean_line(&line))
            return 400;
        if (line.n == 0 && !is_first)
            break;
        int status = is_first ? take_request_line(h, &line) : take_field_line(h, &line);
        if (status != 200)
            return status;
        is_first = false;
    }
    *ret_used = (size_t)(at - bytes);
    if (h->request->is_post && !h->has_length)
        return 411;
    return h->has_host || h->is_old ? 200 : 400;
}

static int parse_request(struct request_head *h, const char *bytes, size_t n, size_t *ret_used)
{
    memset(h->request, 0, sizeof *h->request);
    size_t seen = n < TMK_HTTP_HEAD_MOST ? n : TMK_HTTP_HEAD_MOST;
    int status = take_head(h, bytes, seen, ret_used);
    return status == 0 && n >= TMK_HTTP_HEAD_MOST ? 431 : status;
}

int tmk_http_request_parse(const char *bytes, size_t n, struct tmk_http_request *ret,
                           size_t *ret_used)
{
    struct request_head h = {.request = ret};
    return parse_request(&h, bytes, n, ret_used);
}

int tmk_http_request_parse_post(const char *bytes, size_t n, size_t body_most,
                                struct tmk_http_request *ret, size_t *ret_used)
{
    struct request_head h = {.request = ret, .takes_post = true, .body_most = body_most};
    return parse_request(&h, bytes, n, ret_used);
}
