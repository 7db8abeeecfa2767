/* SPDX-License-Identifier: MIT */
/* cli/output/sheet.c - see sheet.h. */
#include "cli/output/sheet.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/chart.h"
#include "cli/output/say.h"
#include "cli/output/terminal.h"
#include "cli/output/xalloc.h"
#include "kit/glyph.h"
#include "kit/language.h"
#include "kit/markdown.h"
#include "kit/print.h"
#include "kit/utf8.h"

enum { INDENT = 2 };

struct tmk_sheet tmk_sheet_on(FILE *out)
{
    return (struct tmk_sheet){.out = out, .colour = tmk_wants_colour(out)};
}

unsigned tmk_sheet_width(const struct tmk_sheet *sheet)
{
    return sheet->width ? sheet->width : tmk_width_of(sheet->out);
}

unsigned tmk_sheet_prose_width(const struct tmk_sheet *sheet)
{
    unsigned width = tmk_sheet_width(sheet);
    return width < TMK_WIDTH_PROSE ? width : TMK_WIDTH_PROSE;
}

const char *tmk_sheet_role(const struct tmk_sheet *sheet, enum tmk_role role)
{
    return tmk_role_code(sheet->colour, role);
}

static void begin_role(const struct tmk_sheet *sheet, enum tmk_role role)
{
    fputs(tmk_sheet_role(sheet, role), sheet->out);
}

static void end_role(const struct tmk_sheet *sheet)
{
    fputs(tmk_colour_end(sheet->colour), sheet->out);
}

/* Write a text in which no sign of Markdown means anything: it may contain foreign text. */
static void put_markdown(const struct tmk_sheet *sheet, const char *lead, const char *text,
                         bool begins_line)
{
    fputs(lead, sheet->out);
    tmk_markdown_text(sheet->out, text, begins_line);
    fputc('\n', sheet->out);
}

void tmk_sheet_title(struct tmk_sheet *sheet, const char *text)
{
    sheet->is_begun = true;
    if (sheet->markdown) {
        put_markdown(sheet, "# ", text, false);
        return;
    }
    begin_role(sheet, TMK_ROLE_STRONG);
    size_t width = tmk_utf8_write(sheet->out, text, tmk_sheet_width(sheet));
    fputc('\n', sheet->out);
    for (size_t i = 0; i < width; i++)
        fputs(tmk_glyph("═"), sheet->out);
    end_role(sheet);
    fputc('\n', sheet->out);
}

void tmk_sheet_heading(struct tmk_sheet *sheet, const char *text)
{
    if (sheet->is_begun)
        fputc('\n', sheet->out);
    sheet->is_begun = true;
    if (sheet->markdown)
        put_markdown(sheet, "## ", _(text), false);
    else {
        begin_role(sheet, TMK_ROLE_STRONG);
        tmk_print(sheet->out, "%s", _(text));
        end_role(sheet);
        fputc('\n', sheet->out);
    }
}

void tmk_sheet_wrap_at(FILE *out, const char *text, const char *lead, size_t columns)
{
    size_t indent = tmk_utf8_width(lead), at = indent;
    fputs(lead, out);
    for (size_t space = 0; *text;) {
        size_t n = tmk_utf8_piece(text);
        char *word = tmk_xformat("%.*s", (int)n, text);
        size_t width = tmk_utf8_width(word);
        if (at > indent && at + space + width > columns) {
            fprintf(out, "\n%*s", (int)indent, "");
            at = indent;
        } else if (space > 0) {
            fputc(' ', out);
            at++;
        }
        tmk_utf8_write(out, word, SIZE_MAX); /* it may be a stranger's */
        at += width;
        free(word);
        text += n;
        space = *text == ' ' || *text == '\n';
        text += strspn(text, " \n");
    }
    fputc('\n', out);
}

void tmk_sheet_wrap(FILE *out, const char *text, const char *lead)
{
    tmk_sheet_wrap_at(out, text, lead, tmk_prose_width_of(out));
}

void tmk_sheet_verdict(struct tmk_sheet *sheet, enum tmk_role role, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = tmk_xformat_list(_(format), args);
    va_end(args);
    sheet->is_begun = true;
    if (sheet->markdown)
        put_markdown(sheet, "\n", text, true);
    else {
        begin_role(sheet, TMK_ROLE_STRONG);
        begin_role(sheet, role);
        tmk_sheet_wrap_at(sheet->out, text, "", tmk_sheet_prose_width(sheet));
        end_role(sheet);
    }
    free(text);
}

void tmk_sheet_text(struct tmk_sheet *sheet, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = tmk_xformat_list(_(format), args);
    va_end(args);
    if (sheet->markdown)
        put_markdown(sheet, "\n", text, true);
    else
        tmk_sheet_wrap_at(sheet->out, text, "  ", tmk_sheet_prose_width(sheet));
    free(text);
}

void tmk_sheet_code(struct tmk_sheet *sheet, const char *text)
{
    if (sheet->markdown) {
        fputs("\n    ", sheet->out); /* a code block: no sign means anything in it */
        tmk_print(sheet->out, "%s\n", text);
        return;
    }
    fputs("    ", sheet->out);
    begin_role(sheet, TMK_ROLE_DETAIL);
    fputs("| ", sheet->out);
    tmk_utf8_write(sheet->out, text, tmk_sheet_width(sheet) - 6);
    end_role(sheet);
    fputc('\n', sheet->out);
}

void tmk_sheet_command(struct tmk_sheet *sheet, const char *lead, const char *command)
{
    char *text = tmk_xformat("%s%s", lead, command);
    if (sheet->markdown)
        put_markdown(sheet, "\n", text, true);
    else {
        fputs("  ", sheet->out);
        begin_role(sheet, TMK_ROLE_DETAIL);
        tmk_print(sheet->out, "%s", lead);
        end_role(sheet);
        tmk_print(sheet->out, "%s\n", command);
    }
    free(text);
}

static void put_entry(struct tmk_sheet *sheet, const char *lead, const char *text)
{
    char *indented = tmk_xformat("  %s", lead);
    if (sheet->markdown)
        put_markdown(sheet, lead, text, true);
    else
        tmk_sheet_wrap_at(sheet->out, text, indented, tmk_sheet_prose_width(sheet));
    free(indented);
}

void tmk_sheet_item(struct tmk_sheet *sheet, const char *text)
{
    put_entry(sheet, "- ", text);
}

void tmk_sheet_numbered(struct tmk_sheet *sheet, uint32_t number, const char *text)
{
    char *lead = tmk_xformat("%" PRIu32 ". ", number);
    if (!sheet->markdown)
        begin_role(sheet, TMK_ROLE_STRONG);
    put_entry(sheet, lead, text);
    if (!sheet->markdown)
        end_role(sheet);
    free(lead);
}

void tmk_sheet_more(struct tmk_sheet *sheet, const char *text)
{
    put_entry(sheet, "   ", text);
}

void tmk_sheet_table(struct tmk_sheet *sheet, struct tmk_table *t)
{
    struct tmk_table_style style = {.indent = INDENT,
                                    .width = tmk_sheet_width(sheet),
                                    .markdown = sheet->markdown,
                                    .title_on = tmk_sheet_role(sheet, TMK_ROLE_DETAIL),
                                    .title_off = tmk_colour_end(sheet->colour),
                                    .paint_off = sheet->colour ? tmk_colour_end(true) : NULL};
    if (sheet->markdown)
        fputc('\n', sheet->out);
    if (tmk_table_n_rows(t) > 0 && tmk_table_print(t, sheet->out, &style) < 0)
        tmk_die("out of memory");
    tmk_table_close(t);
}

void tmk_sheet_chart(struct tmk_sheet *sheet, const uint64_t *values, uint32_t n, uint64_t start_ns,
                     uint64_t end_ns)
{
    if (sheet->markdown)
        fputs("\n```text\n", sheet->out);
    tmk_chart_write(sheet->out, values, n, start_ns, end_ns);
    if (sheet->markdown)
        fputs("```\n", sheet->out);
}
