/* SPDX-License-Identifier: MIT */
/* cli/output/html.c - see html.h. */
#include "cli/output/html.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/xalloc.h"
#include "kit/utf8.h"

static const char *entity_of(char c)
{
    switch (c) {
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

void tmk_html_text(FILE *out, const char *text)
{
    while (*text) {
        const char *from = text, *entity = entity_of(*text);
        size_t columns;
        uint32_t c = tmk_utf8_shown(&text, &columns);
        if (entity)
            fputs(entity, out);
        else if (c == TMK_UTF8_BAD)
            fputs("\xef\xbf\xbd", out);
        else
            fwrite(from, 1, (size_t)(text - from), out);
    }
}

void tmk_html_element(FILE *out, const char *tag, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = tmk_xformat_list(format, args);
    va_end(args);
    fprintf(out, "<%s>", tag);
    tmk_html_text(out, text);
    fprintf(out, "</%.*s>\n", (int)strcspn(tag, " "), tag);
    free(text);
}
