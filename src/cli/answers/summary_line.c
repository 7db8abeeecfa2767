/* SPDX-License-Identifier: MIT */
/* cli/answers/summary_line.c - see summary_line.h. */
#include "cli/answers/summary_line.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/sheet.h"
#include "cli/output/terminal.h"
#include "cli/output/xalloc.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/utf8.h"
#include "model/run.h"

void tmk_summary_line(FILE *out, const char *name, const char *format, ...)
{
    char text[1024], lead[64];
    const char *shown = _(name);
    int pad = TMK_SUMMARY_NAME_WIDTH - 2 - (int)tmk_utf8_width(shown);
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, _(format), args);
    va_end(args);
    snprintf(lead, sizeof lead, "  %s%*s", shown, pad > 0 ? pad : 0, "");
    tmk_sheet_wrap(out, text, lead);
}

void tmk_summary_code(FILE *out, const char *text)
{
    fprintf(out, "%*s%s| ", TMK_SUMMARY_NAME_WIDTH, "", tmk_role_on(out, TMK_ROLE_DETAIL));
    tmk_utf8_write(out, text, tmk_width_of(out) - TMK_SUMMARY_NAME_WIDTH - 2);
    fprintf(out, "%s\n", tmk_role_off(out, TMK_ROLE_DETAIL));
}

/* Returns a key with its file's short name: lines are short here. The caller's. */
static char *short_key(const char *key, enum tmk_by by)
{
    char cell[TMK_FRAME_FILE_BYTES];
    if (!key)
        return tmk_xstrdup(by == TMK_BY_MODULE ? _("outside any module") : "-");
    if (by != TMK_BY_SITE)
        return tmk_xstrdup(by == TMK_BY_CATEGORY ? _(key) : key);
    const char *name = tmk_frame_file(key, cell), *end = strchr(key, '>');
    return name == cell && end ? tmk_xformat("%s%s", cell, end + 1) : tmk_xstrdup(name);
}

void tmk_summary_shares(FILE *out, const char *name, enum tmk_by by,
                        const struct tmk_peak_row *rows, uint64_t n, uint64_t whole)
{
    char text[TMK_SHEET_WIDTH * 4] = "";
    if (n == 0 || (n == 1 && !rows[0].key))
        return;
    for (uint64_t i = 0; i < n; i++) {
        char size[TMK_AMOUNT_BYTES], percent[TMK_AMOUNT_BYTES];
        char *key = short_key(rows[i].key, by);
        char *part = tmk_xformat("%s%.60s %s (%s)", i ? _(", ") : "", key,
                                 tmk_size_text(rows[i].bytes, size),
                                 tmk_percent_text(rows[i].bytes, whole, percent));
        bool fits =
            tmk_utf8_width(text) + tmk_utf8_width(part) <= TMK_SHEET_WIDTH - TMK_SUMMARY_NAME_WIDTH;
        if (fits || i == 0)
            strncat(text, part, sizeof text - strlen(text) - 1);
        free(part);
        free(key);
        if (!fits)
            break;
    }
    tmk_summary_line(out, name, "%s", text);
}
