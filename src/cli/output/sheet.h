/* SPDX-License-Identifier: MIT */
/* cli/output/sheet.h - the writer of text for people: headings, sentences, tables and charts, for a
 * screen or as Markdown. The caller says once what is on the page, for both. Width, colours and
 * signs are the terminal's (cli/output/terminal.h). kit/tree.h is its counterpart for machines. */
#ifndef TMK_CLI_OUTPUT_SHEET_H
#define TMK_CLI_OUTPUT_SHEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/output/terminal.h"
#include "kit/table.h"

enum { TMK_SHEET_WIDTH = TMK_WIDTH_USUAL };

struct tmk_sheet {
    FILE *out;
    bool markdown;
    bool colour;
    bool is_begun;  /* something is on it */
    unsigned width; /* 0: of the terminal that `out` leads to, else 80 */
};

/* Returns a sheet on `out`, with its colours. */
struct tmk_sheet tmk_sheet_on(FILE *out);
/* Return the columns for tables, and for prose. */
unsigned tmk_sheet_width(const struct tmk_sheet *sheet);
unsigned tmk_sheet_prose_width(const struct tmk_sheet *sheet);

void tmk_sheet_title(struct tmk_sheet *sheet, const char *text);
/* What follows translates headings and formats (kit/language.h), but no text that is ready. */
void tmk_sheet_heading(struct tmk_sheet *sheet, const char *text);
/* Write the answer in a sentence, in the role's colour and bold; it comes first. */
void tmk_sheet_verdict(struct tmk_sheet *sheet, enum tmk_role role, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Write `text` wrapped as prose on `out` is. `lead` begins the first line, as many spaces begin the
 * others. */
void tmk_sheet_wrap(FILE *out, const char *text, const char *lead);
/* The same at `columns`. */
void tmk_sheet_wrap_at(FILE *out, const char *text, const char *lead, size_t columns);
/* Write a paragraph, wrapped. */
void tmk_sheet_text(struct tmk_sheet *sheet, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Write a line of code, as it stands in its file. */
void tmk_sheet_code(struct tmk_sheet *sheet, const char *text);
/* Write words and a command to copy, which is never wrapped. */
void tmk_sheet_command(struct tmk_sheet *sheet, const char *lead, const char *command);
/* Write an entry of a list or of a numbered list, wrapped. */
void tmk_sheet_item(struct tmk_sheet *sheet, const char *text);
/* Write a further paragraph of such an entry. */
void tmk_sheet_more(struct tmk_sheet *sheet, const char *text);
/* Write an entry of a numbered list: what to do. */
void tmk_sheet_numbered(struct tmk_sheet *sheet, uint32_t number, const char *text);
/* Return what begins a role and ends any, for tmk_table_paint(); "" without colours. */
const char *tmk_sheet_role(const struct tmk_sheet *sheet, enum tmk_role role);
/* Print the table and close it. An empty table prints nothing. */
void tmk_sheet_table(struct tmk_sheet *sheet, struct tmk_table *t);
void tmk_sheet_chart(struct tmk_sheet *sheet, const uint64_t *values, uint32_t n, uint64_t start_ns,
                     uint64_t end_ns);

#endif
