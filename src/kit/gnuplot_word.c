/* SPDX-License-Identifier: MIT */
/* kit/gnuplot_word.c - see gnuplot_word.h.
 *
 * Strings stand in double quotes, and every byte that could mean something to gnuplot is an octal
 * escape: quotes and backslashes, backquotes (commands of a shell, even in a string), '@' (macros).
 * Single quotes were rejected: gnuplot 5.4 cannot read '' at the start of such a string, nor behind
 * another ''. */
#include "kit/gnuplot_word.h"

#include <stdbool.h>
#include <string.h>

/* Whether gnuplot reads the byte as it is: letters and digits of ASCII whatever the locale, all
 * bytes beyond ASCII, and some signs. */
static bool is_plain_in_gnuplot(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c >= 0x80 || (c && strchr(" ,-./:=_", c));
}

/* gnuplot takes four digits behind a backslash when the first is a zero, else three. */
static void put_gnuplot_byte(FILE *script, unsigned char c)
{
    if (is_plain_in_gnuplot(c))
        fputc(c, script);
    else
        fprintf(script, c < 0100 ? "\\%04o" : "\\%03o", c);
}

static void put_gnuplot_word(FILE *script, const char *text, bool is_format)
{
    fputc('"', script);
    for (; *text; text++) {
        put_gnuplot_byte(script, (unsigned char)*text);
        if (is_format && *text == '%')
            put_gnuplot_byte(script, '%');
    }
    fputc('"', script);
}

void tmk_gnuplot_word(FILE *script, const char *text)
{
    put_gnuplot_word(script, text, false);
}

void tmk_gnuplot_tic_word(FILE *script, const char *text)
{
    put_gnuplot_word(script, text, true);
}
