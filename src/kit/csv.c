/* SPDX-License-Identifier: MIT */
/* kit/csv.c - see csv.h. */
#include "kit/csv.h"

#include <inttypes.h>
#include <string.h>

static void lead(struct tmk_csv *c)
{
    if (c->in_row)
        fputc(',', c->out);
    c->in_row = true;
}

static bool wants_quotes(const char *text)
{
    size_t n = strlen(text);
    return n == 0 || text[strcspn(text, ",\"\r\n")] || text[0] == ' ' || text[n - 1] == ' ';
}

void tmk_csv_init(struct tmk_csv *c, FILE *out)
{
    *c = (struct tmk_csv){.out = out};
}

void tmk_csv_text(struct tmk_csv *c, const char *text)
{
    lead(c);
    if (!text)
        return;
    if (!wants_quotes(text)) {
        fputs(text, c->out);
        return;
    }
    fputc('"', c->out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', c->out);
        fputc(*text, c->out);
    }
    fputc('"', c->out);
}

void tmk_csv_u64(struct tmk_csv *c, uint64_t value)
{
    lead(c);
    fprintf(c->out, "%" PRIu64, value);
}

void tmk_csv_i64(struct tmk_csv *c, int64_t value)
{
    lead(c);
    fprintf(c->out, "%" PRId64, value);
}

void tmk_csv_end_row(struct tmk_csv *c)
{
    fputc('\n', c->out);
    c->in_row = false;
}
