/* SPDX-License-Identifier: MIT */
/* web/url_query.c - see url_query.h. */
#include "web/url_query.h"

#include <string.h>

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decode `n` bytes; no NUL can come out. */
static bool decode_part(const char *from, size_t n, char *to, size_t room)
{
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        int c = from[i] == '+' ? ' ' : from[i];
        if (c == '%') {
            bool is_whole = n - i > 2;
            int high = is_whole ? hex_digit(from[i + 1]) : -1;
            int low = is_whole ? hex_digit(from[i + 2]) : -1;
            c = high < 0 || low < 0 ? 0 : high * 16 + low;
            i += 2;
        }
        if (c == 0 || used + 1 >= room)
            return false;
        to[used++] = (char)c;
    }
    to[used] = '\0';
    return true;
}

bool tmk_url_query_text(const char *query, const char *name, char *to, size_t room)
{
    size_t n_name = strlen(name);
    for (const char *at = query; *at;) {
        size_t n = strcspn(at, "&");
        if (n > n_name && at[n_name] == '=' && strncmp(at, name, n_name) == 0)
            return decode_part(at + n_name + 1, n - n_name - 1, to, room);
        at += n + (at[n] == '&');
    }
    return false;
}

bool tmk_url_query_number(const char *query, const char *name, uint64_t *ret)
{
    char text[20];
    if (!tmk_url_query_text(query, name, text, sizeof text) || !text[0])
        return false;
    *ret = 0;
    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9' || c - text >= 18)
            return false;
        *ret = *ret * 10 + (uint64_t)(*c - '0');
    }
    return true;
}
