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
#include "kit/glyph.h"
#include "kit/grow.h"
#include "kit/language.h"
#include "kit/markdown.h"
#include "kit/utf8.h"
#include "kit/wrap.h"

/* The blanks between columns, the least width of a column that shrinks, the most lines of a title,
 * what the further lines of a cell are indented by, and the columns of a bar where there is no
 * width to fit, at least, and at most. */
enum {
    GAP = 2,
    LEAST_WIDTH = 8,
    TITLE_LINES = 3,
    HANG = 2,
    BAR_USUAL = 16,
    BAR_LEAST = 8,
    BAR_MOST = 64
};

struct table_cell {
    const char *text;
    const char *paint;    /* NULL: none */
    uint64_t part, whole; /* of a bar */
};

struct tmk_table {
    const struct tmk_column *columns;
    uint32_t n_columns;
    bool failed;
    bool has_printed;
    bool keeps_titles;
    size_t *widths;
    struct table_cell *cells;
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

void tmk_table_keep_titles(struct tmk_table *t)
{
    if (t)
        t->keeps_titles = true;
}

static void add_table_cell(struct tmk_table *t, const char *text)
{
    if (!text || TMK_GROW(t->cells, t->n_cells + 1, t->room) < 0) {
        t->failed = true;
        return;
    }
    t->cells[t->n_cells++] = (struct table_cell){.text = text};
}

void tmk_table_cell(struct tmk_table *t, const char *text)
{
    if (!t)
        return;
    add_table_cell(t, text ? tmk_arena_text(&t->texts, text, strlen(text)) : "-");
}

void tmk_table_bar(struct tmk_table *t, uint64_t part, uint64_t whole)
{
    tmk_table_cell(t, "");
    if (!t || t->failed)
        return;
    t->cells[t->n_cells - 1].part = part;
    t->cells[t->n_cells - 1].whole = whole;
}

void tmk_table_paint(struct tmk_table *t, const char *on)
{
    if (!t || t->failed || t->n_cells == 0 || !on || !*on)
        return;
    const char *copy = tmk_arena_text(&t->texts, on, strlen(on));
    t->failed |= !copy;
    t->cells[t->n_cells - 1].paint = copy;
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
    return t->keeps_titles ? t->columns[c].title : _(t->columns[c].title);
}

static void measure_columns(struct tmk_table *t)
{
    for (uint32_t c = 0; c < t->n_columns && has_titles(t) && !t->has_printed; c++)
        t->widths[c] = tmk_utf8_width(title_of(t, c));
    for (uint64_t i = 0; i < t->n_cells; i++) {
        size_t width = tmk_utf8_width(t->cells[i].text);
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
                width = tmk_utf8_width(t->cells[i].text) > width ? tmk_utf8_width(t->cells[i].text)
                                                                 : width;
            if (t->columns[c].shrink != TMK_SHRINK || width + most >= t->widths[c])
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
            if (t->columns[c].shrink == TMK_SHRINK && widths[c] > LEAST_WIDTH &&
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

/* ---- bars ---- */

/* Gives all bars together the room that is left, within their limits; the usual width where there
 * is no room to fit. */
static void size_bars(struct tmk_table *t, size_t room)
{
    size_t n = 0;
    for (uint32_t c = 0; c < t->n_columns; c++) {
        n += t->columns[c].shrink == TMK_BAR;
        if (t->columns[c].shrink == TMK_BAR && !t->has_printed)
            t->widths[c] = room ? BAR_LEAST : BAR_USUAL;
    }
    size_t used = total_width(t);
    if (n == 0 || room <= used || t->has_printed)
        return;
    size_t more = (room - used) / n;
    for (uint32_t c = 0; c < t->n_columns; c++)
        if (t->columns[c].shrink == TMK_BAR)
            t->widths[c] += more < BAR_MOST - BAR_LEAST ? more : BAR_MOST - BAR_LEAST;
}

/* Writes a bar. Returns its columns. */
static size_t print_bar(FILE *out, const struct table_cell *cell, size_t width)
{
    char buffer[3 * BAR_MOST + 4];
    tmk_bar(cell->part, cell->whole, (unsigned)(width < BAR_MOST ? width : BAR_MOST), buffer);
    fputs(buffer, out);
    return tmk_utf8_width(buffer);
}

/* ---- lines ---- */

/* A line of titles, which has no more lines behind it. */
static void print_title_line(const struct tmk_table *t, FILE *out, unsigned indent,
                             const char *const *cells)
{
    uint32_t n = t->n_columns; /* without the empty ones at the end */
    while (n > 0 && !*cells[n - 1])
        n--;
    pad_cell(out, indent);
    for (uint32_t c = 0; c < n; c++) {
        size_t width = tmk_utf8_width(cells[c]);
        size_t space = width < t->widths[c] ? t->widths[c] - width : 0;
        if (t->columns[c].align == TMK_RIGHT)
            pad_cell(out, space);
        tmk_utf8_write(out, cells[c], t->widths[c]);
        if (c + 1 < n)
            pad_cell(out, GAP + (t->columns[c].align == TMK_LEFT ? space : 0));
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
        print_title_line(t, out, indent, line);
    }
}

/* What the further lines of a cell are indented by. */
static size_t hang_of(const struct tmk_column *column, const char *text, size_t width)
{
    size_t hang = strspn(text, " ") + HANG;
    return column->align == TMK_RIGHT ? 0 : hang < width / 2 ? hang : width / 2;
}

/* A row while its lines are printed. */
struct row_print {
    const struct table_cell *cells;
    const char **at; /* where each cell's next line begins */
    bool is_first;   /* of the lines */
    const char *paint_off;
};

/* Finds the next line of a cell. Returns its columns; *ret_rest is what comes behind it. */
static size_t next_cell_line(const struct tmk_column *column, const char *text, size_t width,
                             const char **ret_rest)
{
    if (column->shrink == TMK_SHRINK && width >= 2)
        return tmk_wrap_line(text, width, ret_rest);
    *ret_rest = text + strlen(text);
    return tmk_utf8_width(text);
}

/* Prints the next line of a cell and its padding. */
static void print_cell_line(const struct tmk_table *t, FILE *out, const struct row_print *row,
                            uint32_t c, bool is_last)
{
    const struct tmk_column *column = &t->columns[c];
    const struct table_cell *cell = &row->cells[c];
    const char *text = row->at[c], *paint = row->paint_off && cell->paint ? cell->paint : "";
    size_t hang = row->is_first || !*text ? 0 : hang_of(column, cell->text, t->widths[c]);
    size_t width = t->widths[c] - hang, columns = 0;
    bool is_bar = row->is_first && cell->whole;
    if (*text)
        columns = next_cell_line(column, text, width, &row->at[c]);
    size_t space = columns < width ? width - columns : 0;
    pad_cell(out, hang + (column->align == TMK_RIGHT ? space : 0));
    fputs(columns || is_bar ? paint : "", out);
    if (is_bar)
        space -= print_bar(out, cell, width);
    tmk_utf8_fill(out, text, columns);
    fputs((columns || is_bar) && *paint ? row->paint_off : "", out);
    if (!is_last)
        pad_cell(out, GAP + (column->align == TMK_LEFT ? space : 0));
}

/* How many columns have something on the next line, those before the last of them included. */
static uint32_t n_filled(const struct tmk_table *t, const struct row_print *row)
{
    uint32_t n = t->n_columns;
    while (n > 0 && !*row->at[n - 1] && !(row->is_first && row->cells[n - 1].part))
        n--;
    return n;
}

/* Prints a row in as many lines as its longest cell needs. `at` has room for a row. */
static void print_row_lines(const struct tmk_table *t, FILE *out,
                            const struct tmk_table_style *style, const struct table_cell *cells,
                            const char **at)
{
    struct row_print row = {
        .cells = cells, .at = at, .is_first = true, .paint_off = style->paint_off};
    for (uint32_t c = 0; c < t->n_columns; c++)
        at[c] = cells[c].text;
    for (uint32_t n; (n = n_filled(t, &row)) > 0 || row.is_first; row.is_first = false) {
        pad_cell(out, style->indent);
        for (uint32_t c = 0; c < n; c++)
            print_cell_line(t, out, &row, c, c + 1 == n);
        fputc('\n', out);
    }
}

static void lay_out(struct tmk_table *t, const struct tmk_table_style *style)
{
    size_t room = style->width > style->indent ? style->width - style->indent : 0;
    measure_columns(t);
    size_bars(t, room);
    if (room > 0) {
        fold_titles(t, room);
        shrink_columns(t, room);
    }
}

static void print_text_rows(struct tmk_table *t, FILE *out, const struct tmk_table_style *style)
{
    const char **line = calloc(t->n_columns, sizeof *line);
    t->failed |= !line;
    lay_out(t, style);
    if (line && has_titles(t) && !t->has_printed) {
        fputs(style->title_on ? style->title_on : "", out);
        print_titles(t, out, style->indent, line);
        fputs(style->title_off ? style->title_off : "", out);
    }
    for (uint64_t i = 0; line && i + t->n_columns <= t->n_cells; i += t->n_columns)
        print_row_lines(t, out, style, t->cells + i, line);
    free(line);
}

static void print_markdown_cell(FILE *out, const char *text)
{
    fputc(' ', out);
    tmk_markdown_text(out, text, false);
    fputs(" |", out);
}

static void print_markdown_table_cell(const struct tmk_table *t, FILE *out, uint32_t c,
                                      const struct table_cell *cell)
{
    char bar[3 * BAR_USUAL + 4];
    bool is_bar = t->columns[c].shrink == TMK_BAR && cell->whole;
    print_markdown_cell(out,
                        is_bar ? tmk_bar(cell->part, cell->whole, BAR_USUAL, bar) : cell->text);
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
            print_markdown_table_cell(t, out, c, &t->cells[i + c]);
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
