/* SPDX-License-Identifier: MIT */
/* cli/query/query_output.c - see query_output.h.
 *
 * The first rows of a table are held as texts. From them come the widths, which columns are
 * numbers, and whether the screen is wide enough for a table at all. */
#include "cli/query/query_output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/output/say.h"
#include "cli/output/terminal.h"
#include "cli/output/xalloc.h"
#include "interop/out/result_out.h"
#include "kit/arena.h"
#include "kit/table.h"
#include "kit/utf8.h"

enum {
    HELD_ROWS = 1000,
    LEAST_TEXT_WIDTH = 12, /* of a column of texts, below which a table is no longer readable */
    GAP = 2,               /* between two columns */
};
#define COUNT_NS 300000000u /* how long rows that are not shown are counted */

struct printer {
    const struct tmk_query_style *style;
    sqlite3_stmt *statement;
    uint32_t n_columns;
    struct tmk_column *columns;
    struct tmk_table *table;    /* NULL: rows are paragraphs */
    struct tmk_arena texts;     /* of the cells that are held */
    const char **cells;         /* NULL is unknown */
    uint64_t n_rows, n_printed; /* held; printed before */
    bool has_begun;             /* it is known whether this is a table */
    struct tmk_result_out out;
};

/* ---- a table, or paragraphs ---- */

/* Returns the columns that column `c` needs at least. */
static size_t least_width(const struct printer *p, uint32_t c)
{
    size_t most = 1, title = tmk_utf8_width(p->columns[c].title);
    for (uint64_t i = 0; i < p->n_rows; i++) {
        const char *text = p->cells[i * p->n_columns + c];
        size_t width = text ? tmk_utf8_width(text) : 1;
        most = width > most ? width : most;
    }
    if (p->columns[c].align == TMK_LEFT && most > LEAST_TEXT_WIDTH)
        most = LEAST_TEXT_WIDTH;
    return most > title ? most : title;
}

static bool fits_screen(const struct printer *p)
{
    size_t width = 0;
    for (uint32_t c = 0; c < p->n_columns; c++)
        width += least_width(p, c) + (c ? GAP : 0);
    return p->style->width == 0 || width <= p->style->width;
}

static void print_table_rows(struct printer *p)
{
    struct tmk_table_style style = {.width = p->style->width,
                                    .title_on = tmk_role_on(stdout, TMK_ROLE_DETAIL),
                                    .title_off = tmk_role_off(stdout, TMK_ROLE_DETAIL)};
    for (uint64_t i = 0; i < p->n_rows * p->n_columns; i++)
        tmk_table_cell(p->table, p->cells[i]);
    if (tmk_table_print(p->table, stdout, &style) < 0)
        tmk_die("out of memory");
}

static void print_paragraph(const struct printer *p, uint64_t row, size_t title_width)
{
    printf("%srow %" PRIu64 "\n", p->n_printed + row > 0 ? "\n" : "", p->n_printed + row + 1);
    for (uint32_t c = 0; c < p->n_columns; c++) {
        const char *text = p->cells[row * p->n_columns + c], *title = p->columns[c].title;
        fputs("  ", stdout);
        size_t width = tmk_utf8_write(stdout, title, SIZE_MAX);
        printf("%*s", (int)(title_width - width + GAP), "");
        tmk_utf8_write(stdout, text ? text : "-", SIZE_MAX);
        putchar('\n');
    }
}

static void print_paragraphs(const struct printer *p)
{
    size_t title_width = 0;
    for (uint32_t c = 0; c < p->n_columns; c++) {
        size_t width = tmk_utf8_width(p->columns[c].title);
        title_width = width > title_width ? width : title_width;
    }
    for (uint64_t i = 0; i < p->n_rows; i++)
        print_paragraph(p, i, title_width);
}

/* Print the rows that are held and forget them. */
static void flush_rows(struct printer *p)
{
    for (uint32_t c = 0; !p->has_begun && c < p->n_columns; c++)
        p->columns[c].shrink = p->columns[c].align == TMK_RIGHT ? TMK_FIXED : TMK_SHRINK;
    if (!p->has_begun && fits_screen(p))
        p->table = tmk_table_open(p->columns, p->n_columns);
    tmk_table_keep_titles(p->table);
    p->has_begun = true;
    if (p->table)
        print_table_rows(p);
    else
        print_paragraphs(p);
    p->n_printed += p->n_rows;
    p->n_rows = 0;
    tmk_arena_fini(&p->texts);
}

static void hold_row(struct printer *p)
{
    for (uint32_t c = 0; c < p->n_columns; c++) {
        int type = sqlite3_column_type(p->statement, (int)c);
        const char *text = (const char *)sqlite3_column_text(p->statement, (int)c);
        size_t n = (size_t)sqlite3_column_bytes(p->statement, (int)c);
        if (type == SQLITE_INTEGER || type == SQLITE_FLOAT)
            p->columns[c].align = TMK_RIGHT;
        p->cells[p->n_rows * p->n_columns + c] = text ? tmk_xarena_text(&p->texts, text, n) : NULL;
    }
    if (++p->n_rows == HELD_ROWS)
        flush_rows(p);
}

/* ---- any format ---- */

static void begin_output(struct printer *p)
{
    p->n_columns = (uint32_t)sqlite3_column_count(p->statement);
    if (p->style->format != TMK_QUERY_TABLE) {
        tmk_result_out_begin(&p->out, p->statement, p->style->format == TMK_QUERY_JSON,
                             p->style->is_safe, stdout);
        return;
    }
    p->columns = tmk_xcalloc(p->n_columns, sizeof *p->columns);
    p->cells = tmk_xcalloc((size_t)p->n_columns * HELD_ROWS, sizeof *p->cells);
    for (uint32_t c = 0; c < p->n_columns; c++) {
        const char *type = sqlite3_column_decltype(p->statement, (int)c);
        bool is_number = type && (strcmp(type, "INTEGER") == 0 || strcmp(type, "REAL") == 0);
        p->columns[c] = (struct tmk_column){.title = sqlite3_column_name(p->statement, (int)c),
                                            .align = is_number ? TMK_RIGHT : TMK_LEFT};
    }
}

static void put_row(struct printer *p)
{
    if (p->style->format == TMK_QUERY_TABLE)
        hold_row(p);
    else
        tmk_result_out_row(&p->out);
}

static void end_output(struct printer *p)
{
    if (p->style->format != TMK_QUERY_TABLE) {
        tmk_result_out_end(&p->out);
        return;
    }
    if (p->n_rows > 0 || p->n_printed == 0)
        flush_rows(p);
    p->table = tmk_table_close(p->table);
    free(p->columns);
    free(p->cells);
}

/* Count the rows behind the limit, as long as that is quick. */
static int count_rest(sqlite3_stmt *statement, int rc, struct tmk_query_rows *rows)
{
    uint64_t end_ns = tmk_clock_monotonic_ns() + COUNT_NS;
    for (; rc == SQLITE_ROW; rc = sqlite3_step(statement)) {
        rows->n_more++;
        if (rows->n_more % 1024 == 0 && tmk_clock_monotonic_ns() > end_ns) {
            rows->has_uncounted = true;
            return SQLITE_DONE;
        }
    }
    return rc;
}

int tmk_query_output(sqlite3_stmt *statement, int rc, const struct tmk_query_style *style,
                     struct tmk_query_rows *ret_rows)
{
    struct printer p = {.style = style, .statement = statement};
    struct tmk_query_rows rows = {0};
    begin_output(&p);
    for (; rc == SQLITE_ROW && (!style->limit || rows.n_shown < style->limit);
         rc = sqlite3_step(statement)) {
        put_row(&p);
        rows.n_shown++;
    }
    end_output(&p);
    if (rc == SQLITE_ROW)
        rc = count_rest(statement, rc, &rows);
    *ret_rows = rows;
    return rc;
}
