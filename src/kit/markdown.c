/* SPDX-License-Identifier: MIT */
/* kit/markdown.c - see markdown.h.
 *
 * Signs with a meaning in Markdown get a backslash. GitHub also looks for addresses, mentions,
 * numbers of issues and names of emoji, where a backslash does not help. A zero-width space inside
 * makes plain text of them. It is written as an entity, so that a reader of the file sees it. '$',
 * which begins mathematics there, is an entity too. */
#include "kit/markdown.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "kit/utf8.h"

enum { MOST_OF_EMOJI = 64 }; /* bytes of a name that are looked at */

static const char space[] = "&#8203;";

static const char signs[] = "\\`*_[]<>&|#~";

/* Beginnings that GitHub turns into links; a space goes behind so many bytes. */
static const struct {
    const char *begin;
    size_t n_before;
    bool has_digit; /* only with a number */
} linked[] = {
    {"http://", 4, false}, {"https://", 5, false}, {"ftp://", 3, false}, {"www.", 3, false},
    {"@", 1, false},       {"#", 1, true},         {"gh-", 3, true},
};

/* Whether an emoji such as ":tada:" begins here. A longer name is none, so that a text of megabytes
 * is not read over and over. */
static bool is_emoji(const char *at)
{
    size_t n = 1;
    if (at[0] != ':')
        return false;
    while (n < MOST_OF_EMOJI && at[n] && (isalnum((unsigned char)at[n]) || strchr("_+-", at[n])))
        n++;
    return n > 1 && at[n] == ':';
}

/* The number of bytes at `at` before the zero-width space; 0: GitHub makes no link of this text. */
static size_t bytes_before_space(const char *at)
{
    for (size_t i = 0; i < sizeof linked / sizeof linked[0]; i++) {
        size_t n = strlen(linked[i].begin);
        if (strncasecmp(at, linked[i].begin, n) == 0 &&
            (!linked[i].has_digit || isdigit((unsigned char)at[n])))
            return linked[i].n_before;
    }
    return is_emoji(at) ? 1 : 0;
}

/* Escapes the beginning of a list, a rule or the line under a title; returns the text after it. */
static const char *write_start(FILE *out, const char *text)
{
    text += strspn(text, " \t\r\n");
    size_t n_digits = strspn(text, "0123456789");
    fwrite(text, 1, n_digits, out);
    text += n_digits;
    bool is_number = n_digits > 0 && *text && strchr(".)", *text) && (!text[1] || text[1] == ' ');
    if (is_number || (n_digits == 0 && *text && strchr("-+=", *text))) {
        fputc('\\', out);
        fputc(*text++, out);
    }
    return text;
}

static void write_character(FILE *out, const char *at, size_t n, uint32_t c)
{
    if (*at == '\n' || *at == '\r')
        fputc(' ', out);
    else if (c == TMK_UTF8_BAD)
        fputs("\xef\xbf\xbd", out);
    else if (c == '$')
        fputs("&#36;", out);
    else {
        if (c < 0x80 && strchr(signs, (int)c))
            fputc('\\', out);
        fwrite(at, 1, n, out);
    }
}

void tmk_markdown_text(FILE *out, const char *text, bool begins_line)
{
    const char *end = text + strlen(text);
    size_t n_to_space = 0; /* characters of ASCII; 0: there is none to come */
    while (end > text && end[-1] == ' ')
        end--;
    if (begins_line)
        text = write_start(out, text);
    while (text < end) {
        const char *from = text;
        size_t columns, n_before = bytes_before_space(from);
        uint32_t c = tmk_utf8_shown(&text, &columns);
        if (n_before > 0)
            n_to_space = n_before;
        write_character(out, from, (size_t)(text - from), c);
        if (n_to_space > 0 && --n_to_space == 0)
            fputs(space, out);
    }
}
