/* SPDX-License-Identifier: MIT */
/* kit/csv.c - see csv.h. */
#include "kit/csv.h"

#include <string.h>

#include "kit/utf8.h"

static void write_separator(struct tmk_csv *c)
{
    if (c->in_row)
        fputc(',', c->out);
    c->in_row = true;
}

static bool wants_quotes(const char *text)
{
    size_t n = strlen(text);
    return n == 0 || text[strcspn(text, ",\"\r\n\t")] || text[0] == ' ' || text[n - 1] == ' ';
}

/* Whether a spreadsheet would calculate the text, or might after it strips leading blanks. In some
 * languages the wide forms of these signs count as the signs. */
static bool begins_formula(const char *text)
{
    static const uint32_t signs[] = {'=',  '+',    '-',    '@',    '\t',  '\r',
                                     '\n', 0xff1d, 0xff0b, 0xff0d, 0xff20};
    text += strspn(text, " ");
    uint32_t c = tmk_utf8_next(&text);
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (c == signs[i])
            return true;
    return false;
}

/* Writes the text with U+FFFD for invisible characters. A plain stretch is written at once. */
static void write_shown(FILE *out, const char *text, bool is_safe)
{
    const char *plain = text;
    for (;;) {
        while (*text >= 0x20 && *text < 0x7f && *text != '"')
            text++;
        const char *from = text;
        uint32_t c = tmk_utf8_next(&text);
        bool is_blank = c == '\t' || (!is_safe && (c == '\n' || c == '\r'));
        bool is_bad = c == TMK_UTF8_BAD || (c != 0 && !is_blank && tmk_utf8_is_unseen(c));
        if (c != 0 && c != '"' && !is_bad)
            continue;
        fwrite(plain, 1, (size_t)(from - plain), out);
        if (c == 0)
            return;
        fputs(is_bad ? "\xef\xbf\xbd" : "\"\"", out);
        plain = text;
    }
}

void tmk_csv_init(struct tmk_csv *c, FILE *out, bool is_safe)
{
    *c = (struct tmk_csv){.out = out, .is_safe = is_safe};
}

void tmk_csv_text(struct tmk_csv *c, const char *text)
{
    write_separator(c);
    if (!text)
        return;
    bool is_formula = c->is_safe && begins_formula(text);
    bool in_quotes = is_formula || wants_quotes(text);
    fputs(!in_quotes ? "" : is_formula ? "\"'" : "\"", c->out);
    write_shown(c->out, text, c->is_safe);
    if (in_quotes)
        fputc('"', c->out);
}

void tmk_csv_number(struct tmk_csv *c, const char *text)
{
    write_separator(c);
    if (text)
        fputs(text, c->out);
}

void tmk_csv_end_row(struct tmk_csv *c)
{
    fputc('\n', c->out);
    c->in_row = false;
}
