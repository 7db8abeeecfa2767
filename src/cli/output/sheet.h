/* SPDX-License-Identifier: MIT */
/* cli/output/sheet.h - the writer of text for people: headings, sentences, tables and charts, for a
 * screen of 80 columns or as Markdown. The caller says once what is on the page, for both.
 * kit/tree.h is its counterpart for machines. */
#ifndef TMK_CLI_OUTPUT_SHEET_H
#define TMK_CLI_OUTPUT_SHEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "kit/table.h"

enum { TMK_SHEET_WIDTH = 80 };

struct tmk_sheet {
    FILE *out;
    bool markdown;
    bool colour;
    bool is_begun; /* something is on it */
};

void tmk_sheet_title(struct tmk_sheet *sheet, const char *text);
/* What follows translates headings and formats (kit/language.h), but no text that is ready. */
void tmk_sheet_heading(struct tmk_sheet *sheet, const char *text);
/* Write `text` wrapped at 80 columns. `lead` begins the first line, as many spaces begin the
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
/* Write an entry of a numbered list. */
void tmk_sheet_numbered(struct tmk_sheet *sheet, uint32_t number, const char *text);
/* Print the table and close it. An empty table prints nothing. */
void tmk_sheet_table(struct tmk_sheet *sheet, struct tmk_table *t);
void tmk_sheet_chart(struct tmk_sheet *sheet, const uint64_t *values, uint32_t n, uint64_t start_ns,
                     uint64_t end_ns);

#endif
