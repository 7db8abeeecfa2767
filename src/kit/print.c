/* SPDX-License-Identifier: MIT */
/* kit/print.c - see print.h.
 *
 * A control character stands for the line ends of the format while it is expanded. Should an
 * argument have that character too, the next one is tried. */
#include "kit/print.h"

#include <stdlib.h>
#include <string.h>

#include "kit/utf8.h"

enum { MARKS = 8 }; /* 1 to 8: never in a format */

static size_t count_of(const char *text, char c)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == c;
    return n;
}

/* Expands the format, with `mark` for each of its line ends; the caller frees the text. NULL when
 * there is no memory, or an argument has such a character. */
static char *expand_format(const char *format, char mark, va_list args)
{
    char *marked = strdup(format), *text = NULL;
    for (char *at = marked; at && *at; at++)
        if (*at == '\n')
            *at = mark;
    int n = marked ? vasprintf(&text, marked, args) : -1;
    free(marked);
    if (n < 0)
        return NULL;
    if (count_of(text, mark) == count_of(format, '\n'))
        return text;
    free(text);
    return NULL;
}

static void write_lines(FILE *out, char *text, char mark)
{
    for (char *end; (end = strchr(text, mark)); text = end + 1) {
        *end = '\0';
        tmk_utf8_write(out, text, SIZE_MAX);
        fputc('\n', out);
    }
    tmk_utf8_write(out, text, SIZE_MAX);
}

void tmk_vprint(FILE *out, const char *format, va_list args)
{
    char *text = NULL, mark = 0;
    while (!text && ++mark <= MARKS) {
        va_list again;
        va_copy(again, args);
        text = expand_format(format, mark, again);
        va_end(again);
    }
    if (text)
        write_lines(out, text, mark);
    else
        fputs("(a text with every control character in it)\n", out);
    free(text);
}

void tmk_print(FILE *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tmk_vprint(out, format, args);
    va_end(args);
}
