/* SPDX-License-Identifier: MIT */
/* kit/table.h - rows of texts in straight columns, for a screen or as Markdown.
 *
 * Cells are added one after the other, row by row, and copied. Columns are as wide as their widest
 * cell, counted in columns of the terminal (kit/utf8.h). Where a table must fit a width, bars are
 * made shorter, then titles of columns that may shrink are broken behind '_' and blanks, then cells
 * of these columns are broken over several lines (kit/wrap.h), the widest first. No cell is ever
 * cut: two rows that differ look different. Bars take the width that is left over.
 *
 * Print reports a lack of memory of any earlier call. */
#ifndef TMK_KIT_TABLE_H
#define TMK_KIT_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct tmk_column {
    const char *title; /* translated here; NULL: the table has no title line (all or none) */
    enum { TMK_LEFT, TMK_RIGHT } align;
    enum { TMK_FIXED, TMK_SHRINK, TMK_BAR } shrink; /* TMK_BAR: cells by tmk_table_bar() */
};

struct tmk_table;

/* `columns` is borrowed until close. NULL without memory; all functions take NULL. */
struct tmk_table *tmk_table_open(const struct tmk_column *columns, uint32_t n_columns);
struct tmk_table *tmk_table_close(struct tmk_table *t);
/* Titles are shown as they are: some are names that the user gave. */
void tmk_table_keep_titles(struct tmk_table *t);

void tmk_table_cell(struct tmk_table *t, const char *text); /* NULL: unknown, shown as "-" */
void tmk_table_cellf(struct tmk_table *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* These values look alike everywhere (kit/amount.h). */
void tmk_table_size(struct tmk_table *t, uint64_t size_bytes); /* unknown: TMK_BYTES_UNKNOWN */
void tmk_table_count(struct tmk_table *t, uint64_t n);
void tmk_table_time(struct tmk_table *t, uint64_t ns);
void tmk_table_number(struct tmk_table *t, int64_t number); /* unknown: negative */
void tmk_table_bar(struct tmk_table *t, uint64_t part, uint64_t whole);
/* Print the cell added last in a colour: `on` is copied; NULL or "": none. */
void tmk_table_paint(struct tmk_table *t, const char *on);
uint64_t tmk_table_n_rows(const struct tmk_table *t);

struct tmk_table_style {
    unsigned indent;
    size_t width;                     /* of the screen; 0: as wide as it gets */
    bool markdown;                    /* then indent and width do not count */
    const char *title_on, *title_off; /* around the title line, e.g. colours; may be NULL */
    const char *paint_off;            /* behind a painted cell; NULL: no cell is painted */
};

/* Prints the rows added so far and forgets them. Returns 0 or TMK_ENOMEM. Rows added and printed
 * later continue under the same titles, with columns at least as wide: so a long result need not be
 * in memory whole. */
int tmk_table_print(struct tmk_table *t, FILE *out, const struct tmk_table_style *style);

#endif
