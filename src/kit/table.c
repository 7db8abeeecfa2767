/* SPDX-License-Identifier: MIT */
/* kit/table.c - see table.h. */
#include "kit/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit/amount.h"
#include "kit/arena.h"
#include "kit/grow.h"
#include "kit/language.h"
#include "kit/markdown.h"
#include "kit/utf8.h"

/* The blanks between columns, the least width of a column that shrinks, and the most lines of a
 * title. */
enum { GAP = 2, LEAST_WIDTH = 8, TITLE_LINES = 3 };

struct tmk_table {
    const struct tmk_column *columns;
    uint32_t n_columns;
    bool failed;
    bool has_printed;
    size_t *widths;
    const char **cells;
    uint64_t n_cells, room;
    struct tmk_arena texts;
};

struct tmk_table *tmk_table_open(const struct tmk_column *columns, uint32_t n_columns)
{
    struct tmk_table *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->columns = columns;
    t->n_columns = n_columns;
    t->widths = calloc(n_columns, sizeof *t->widths);
    return t->widths ? t : tmk_table_close(t);
}

struct tmk_table *tmk_table_close(struct tmk_table *t)
{
    if (!t)
        return NULL;
    free(t->widths);
    free(t->cells);
    tmk_arena_fini(&t->texts);
    free(t);
    return NULL;
}

static void add_table_cell(struct tmk_table *t, const char *text)
{
    if (!text || TMK_GROW(t->cells, t->n_cells + 1, t->room) < 0) {
        t->failed = true;
        return;
    }
    t->cells[t->n_cells++] = text;
}

void tmk_table_cell(struct tmk_table *t, const char *text)
{
    if (!t)
        return;
    add_table_cell(t, text ? tmk_arena_text(&t->texts, text, strlen(text)) : "-");
}

void tmk_table_cellf(struct tmk_table *t, const char *format, ...)
{
    if (!t)
        return;
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tmk_table_cell(t, text);
}

void tmk_table_size(struct tmk_table *t, uint64_t size_bytes)
{
    char text[TMK_AMOUNT_BYTES];
    tmk_table_cell(t, size_bytes != TMK_BYTES_UNKNOWN ? tmk_size_text(size_bytes, text) : NULL);
}

void tmk_table_count(struct tmk_table *t, uint64_t n)
{
    char text[TMK_AMOUNT_BYTES];
    tmk_table_cell(t, tmk_count_text(n, text));
}

void tmk_table_time(struct tmk_table *t, uint64_t ns)
{
    char text[TMK_AMOUNT_BYTES];
    tmk_table_cell(t, tmk_time_text(ns, text));
}

void tmk_table_number(struct tmk_table *t, int64_t number)
{
    if (number < 0)
        tmk_table_cell(t, NULL);
    else
        tmk_table_cellf(t, "%" PRId64, number);
}

uint64_t tmk_table_n_rows(const struct tmk_table *t)
{
    return t ? t->n_cells / t->n_columns : 0;
}

/* ---- printing ---- */

static bool has_titles(const struct tmk_table *t)
{
    return t->columns[0].title != NULL;
}

static const char *title_of(const struct tmk_table *t, uint32_t c)
{
    return _(t->columns[c].title);
}

static void measure_columns(struct tmk_table *t)
{
    for (uint32_t c = 0; c < t->n_columns && has_titles(t) && !t->has_printed; c++)
        t->widths[c] = tmk_utf8_width(title_of(t, c));
    for (uint64_t i = 0; i < t->n_cells; i++) {
        size_t width = tmk_utf8_width(t->cells[i]);
        uint64_t column = i % (t->n_columns ? t->n_columns : 1);
        if (width > t->widths[column])
            t->widths[column] = width;
    }
}

/* ---- titles on several lines ---- */

/* The length of the piece of a title that begins here: names may be broken after '_', texts after a
 * blank. */
static size_t piece_of(const char *title)
{
    size_t n = strcspn(title, "_ ");
    return n + strspn(title + n, "_ ");
}

/* The length of the next line of a title: as many pieces as fit the width, at least one. */
static size_t line_of(const char *title, size_t width)
{
    size_t n = 0;
    if (tmk_utf8_width(title) <= width)
        return strlen(title);
    do
        n += piece_of(title + n);
    while (title[n] && n + piece_of(title + n) <= width);
    return n;
}

static size_t n_lines_of(const char *title, size_t width)
{
    size_t n = 0;
    for (; *title; n++)
        title += line_of(title, width);
    return n;
}

/* The least width in which a title stands whole on a few lines. */
static size_t folded_width(const char *title)
{
    size_t width = 1;
    for (const char *at = title; *at; at += piece_of(at))
        width = piece_of(at) > width ? piece_of(at) : width;
    while (n_lines_of(title, width) > TITLE_LINES)
        width++;
    return width;
}

static size_t total_width(const struct tmk_table *t)
{
    size_t total = (size_t)GAP * (t->n_columns - 1);
    for (uint32_t c = 0; c < t->n_columns; c++)
        total += t->widths[c];
    return total;
}

/* Breaks the titles of columns that are wide only for their titles, the one that saves most first.
 */
static void fold_titles(struct tmk_table *t, size_t room)
{
    while (has_titles(t) && !t->has_printed && total_width(t) > room) {
        size_t most = 0, best_width = 0;
        uint32_t best = 0;
        for (uint32_t c = 0; c < t->n_columns; c++) {
            size_t width = folded_width(title_of(t, c));
            for (uint64_t i = c; i < t->n_cells; i += t->n_columns)
                width = tmk_utf8_width(t->cells[i]) > width ? tmk_utf8_width(t->cells[i]) : width;
            if (t->columns[c].shrink == TMK_FIXED || width + most >= t->widths[c])
                continue;
            most = t->widths[c] - width;
            best = c;
            best_width = width;
        }
        if (most == 0)
            return;
        t->widths[best] = best_width;
    }
}

/* Take columns off the widest shrinkable one until the table fits. */
static void shrink_columns(struct tmk_table *t, size_t room)
{
    size_t *widths = t->widths;
    for (;;) {
        uint32_t widest = t->n_columns;
        for (uint32_t c = 0; c < t->n_columns; c++)
            if (t->columns[c].shrink != TMK_FIXED && widths[c] > LEAST_WIDTH &&
                (widest == t->n_columns || widths[c] > widths[widest]))
                widest = c;
        if (total_width(t) <= room || widest == t->n_columns)
            return;
        widths[widest]--;
    }
}

static void pad_cell(FILE *out, size_t n)
{
    while (n-- > 0)
        fputc(' ', out);
}

static void print_text_line(const struct tmk_table *t, FILE *out, unsigned indent,
                            const char *const *cells)
{
    const size_t *widths = t->widths;
    uint32_t n = t->n_columns; /* without the empty ones at the end */
    while (n > 0 && !*cells[n - 1])
        n--;
    pad_cell(out, indent);
    for (uint32_t c = 0; c < n; c++) {
        const struct tmk_column *column = &t->columns[c];
        const char *text = cells[c];
        size_t width = tmk_utf8_width(text);
        size_t space = width < widths[c] ? widths[c] - width : 0;
        if (column->align == TMK_RIGHT)
            pad_cell(out, space);
        tmk_utf8_write(out, text, widths[c]);
        if (c + 1 < n)
            pad_cell(out, GAP + (column->align == TMK_LEFT ? space : 0));
    }
    fputc('\n', out);
}

/* A column that shrank has less width than its title needs: the last line then has all the rest,
 * and is cut where it is printed. */
static size_t n_title_lines(const struct tmk_table *t, uint32_t c)
{
    size_t n = n_lines_of(title_of(t, c), t->widths[c]);
    return n < TITLE_LINES ? n : TITLE_LINES;
}

/* The part of a title in the line with `left` - 1 lines below it; NULL without memory. */
static const char *title_line(struct tmk_table *t, uint32_t c, size_t left)
{
    const char *title = title_of(t, c);
    size_t n = n_title_lines(t, c);
    if (n < left)
        return "";
    for (size_t i = left; i < n; i++)
        title += line_of(title, t->widths[c]);
    size_t n_bytes = left == 1 ? strlen(title) : line_of(title, t->widths[c]);
    while (n_bytes > 0 && title[n_bytes - 1] == ' ')
        n_bytes--;
    return tmk_arena_text(&t->texts, title, n_bytes);
}

/* The last lines of all titles stand side by side, above the rows. */
static void print_titles(struct tmk_table *t, FILE *out, unsigned indent, const char **line)
{
    size_t n_lines = 1;
    for (uint32_t c = 0; c < t->n_columns; c++)
        n_lines = n_title_lines(t, c) > n_lines ? n_title_lines(t, c) : n_lines;
    for (size_t left = n_lines; left > 0; left--) {
        for (uint32_t c = 0; c < t->n_columns; c++) {
            line[c] = title_line(t, c, left);
            if (!line[c]) {
                t->failed = true;
                return;
            }
        }
        print_text_line(t, out, indent, line);
    }
}

static void print_text_rows(struct tmk_table *t, FILE *out, const struct tmk_table_style *style)
{
    measure_columns(t);
    if (style->width > style->indent) {
        fold_titles(t, style->width - style->indent);
        shrink_columns(t, style->width - style->indent);
    }
    if (has_titles(t) && !t->has_printed) {
        const char **line = calloc(t->n_columns, sizeof *line);
        fputs(style->title_on ? style->title_on : "", out);
        t->failed |= !line;
        if (line)
            print_titles(t, out, style->indent, line);
        free(line);
        fputs(style->title_off ? style->title_off : "", out);
    }
    for (uint64_t i = 0; i + t->n_columns <= t->n_cells; i += t->n_columns)
        print_text_line(t, out, style->indent, t->cells + i);
}

static void print_markdown_cell(FILE *out, const char *text)
{
    fputc(' ', out);
    tmk_markdown_text(out, text, false);
    fputs(" |", out);
}

static void print_markdown_titles(const struct tmk_table *t, FILE *out)
{
    fputc('|', out);
    for (uint32_t c = 0; c < t->n_columns; c++)
        print_markdown_cell(out, has_titles(t) ? title_of(t, c) : "");
    fputs("\n|", out);
    for (uint32_t c = 0; c < t->n_columns; c++)
        fputs(t->columns[c].align == TMK_RIGHT ? "---:|" : "---|", out);
    fputc('\n', out);
}

static void print_markdown(const struct tmk_table *t, FILE *out)
{
    if (!t->has_printed)
        print_markdown_titles(t, out);
    for (uint64_t i = 0; i + t->n_columns <= t->n_cells; i += t->n_columns) {
        fputc('|', out);
        for (uint32_t c = 0; c < t->n_columns; c++)
            print_markdown_cell(out, t->cells[i + c]);
        fputc('\n', out);
    }
}

int tmk_table_print(struct tmk_table *t, FILE *out, const struct tmk_table_style *style)
{
    if (!t || t->failed)
        return TMK_ENOMEM;
    if (style->markdown)
        print_markdown(t, out);
    else
        print_text_rows(t, out, style);
    t->has_printed = true;
    t->n_cells = 0;
    tmk_arena_fini(&t->texts);
    return t->failed ? TMK_ENOMEM : 0;
}
