/* SPDX-License-Identifier: MIT */
/* cli/answers/summary_line.c - see summary_line.h. */
#include "cli/answers/summary_line.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/sheet.h"
#include "cli/output/xalloc.h"
#include "kit/amount.h"
#include "kit/utf8.h"

void tmk_summary_line(FILE *out, const char *name, const char *format, ...)
{
    char text[1024], lead[TMK_SUMMARY_NAME_WIDTH + 1];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(lead, sizeof lead, "  %-*s", TMK_SUMMARY_NAME_WIDTH - 2, name);
    tmk_sheet_wrap(out, text, lead);
}

void tmk_summary_code(FILE *out, const char *text)
{
    fprintf(out, "%*s| ", TMK_SUMMARY_NAME_WIDTH, "");
    tmk_utf8_write(out, text, TMK_SHEET_WIDTH - TMK_SUMMARY_NAME_WIDTH - 2);
    fputc('\n', out);
}

/* Returns the end of a path: lines are short here. */
static const char *short_key(const char *key, enum tmk_by by)
{
    const char *slash = key && by == TMK_BY_SITE ? strrchr(key, '/') : NULL;
    return slash ? slash + 1 : key ? key : by == TMK_BY_MODULE ? "outside any module" : "-";
}

void tmk_summary_shares(FILE *out, const char *name, enum tmk_by by,
                        const struct tmk_peak_row *rows, uint64_t n, uint64_t whole)
{
    char text[TMK_SHEET_WIDTH * 4] = "";
    if (n == 0 || (n == 1 && !rows[0].key))
        return;
    for (uint64_t i = 0; i < n; i++) {
        char size[TMK_AMOUNT_BYTES], percent[TMK_AMOUNT_BYTES];
        char *part = tmk_xformat("%s%.60s %s (%s)", i ? ", " : "", short_key(rows[i].key, by),
                                 tmk_size_text(rows[i].bytes, size),
                                 tmk_percent_text(rows[i].bytes, whole, percent));
        bool fits =
            tmk_utf8_width(text) + tmk_utf8_width(part) <= TMK_SHEET_WIDTH - TMK_SUMMARY_NAME_WIDTH;
        if (fits || i == 0)
            strncat(text, part, sizeof text - strlen(text) - 1);
        free(part);
        if (!fits)
            break;
    }
    tmk_summary_line(out, name, "%s", text);
}
