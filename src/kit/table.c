/* SPDX-License-Identifier: MIT */
/* kit/table.c - see table.h. */
#include "kit/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit/arena.h"
#include "kit/grow.h"
#include "kit/utf8.h"

enum { GAP = 2, LEAST_WIDTH = 8 }; /* between columns; of a column that shrinks */

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

static void add(struct tmk_table *t, const char *text)
{
    const char **more = text ? tmk_grow(t->cells, t->n_cells + 1, &t->room, sizeof *more) : NULL;
    if (!more) {
        t->failed = true;
        return;
    }
    t->cells = more;
    t->cells[t->n_cells++] = text;
}

void tmk_table_cell(struct tmk_table *t, const char *text)
{
    if (!t)
        return;
    add(t, text ? tmk_arena_text(&t->texts, text, strlen(text)) : "-");
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

uint64_t tmk_table_n_rows(const struct tmk_table *t)
{
    return t ? t->n_cells / t->n_columns : 0;
}

/* ---- printing ---- */

static bool has_titles(const struct tmk_table *t)
{
    return t->columns[0].title != NULL;
}

static void measure(struct tmk_table *t)
{
    for (uint32_t c = 0; c < t->n_columns && has_titles(t) && !t->has_printed; c++)
        t->widths[c] = tmk_utf8_width(t->columns[c].title);
    for (uint64_t i = 0; i < t->n_cells; i++) {
        size_t width = tmk_utf8_width(t->cells[i]);
        uint64_t column = i % (t->n_columns ? t->n_columns : 1);
        if (width > t->widths[column])
            t->widths[column] = width;
    }
}

/* Take columns off the widest shrinkable one until the table fits. */
static void shrink(struct tmk_table *t, size_t room)
{
    size_t *widths = t->widths;
    for (;;) {
        size_t total = (size_t)GAP * (t->n_columns - 1);
        uint32_t widest = t->n_columns;
        for (uint32_t c = 0; c < t->n_columns; c++) {
            total += widths[c];
            if (t->columns[c].shrink != TMK_FIXED && widths[c] > LEAST_WIDTH &&
                (widest == t->n_columns || widths[c] > widths[widest]))
                widest = c;
        }
        if (total <= room || widest == t->n_columns)
            return;
        widths[widest]--;
    }
}

static void pad(FILE *out, size_t n)
{
    while (n-- > 0)
        fputc(' ', out);
}

static void print_line(const struct tmk_table *t, FILE *out, unsigned indent,
                       const char *const *cells)
{
    const size_t *widths = t->widths;
    uint32_t n = t->n_columns; /* without the empty ones at the end */
    while (n > 0 && !*(cells ? cells[n - 1] : t->columns[n - 1].title))
        n--;
    pad(out, indent);
    for (uint32_t c = 0; c < n; c++) {
        const struct tmk_column *column = &t->columns[c];
        const char *text = cells ? cells[c] : column->title;
        size_t width = tmk_utf8_width(text);
        size_t space = width < widths[c] ? widths[c] - width : 0;
        if (column->align == TMK_RIGHT)
            pad(out, space);
        tmk_utf8_write(out, text, widths[c]);
        if (c + 1 < n)
            pad(out, GAP + (column->align == TMK_LEFT ? space : 0));
    }
    fputc('\n', out);
}

static void print_text(struct tmk_table *t, FILE *out, const struct tmk_table_style *style)
{
    measure(t);
    if (style->width > style->indent)
        shrink(t, style->width - style->indent);
    if (has_titles(t) && !t->has_printed) {
        fputs(style->title_on ? style->title_on : "", out);
        print_line(t, out, style->indent, NULL);
        fputs(style->title_off ? style->title_off : "", out);
    }
    for (uint64_t i = 0; i + t->n_columns <= t->n_cells; i += t->n_columns)
        print_line(t, out, style->indent, t->cells + i);
}

static void print_markdown_cell(FILE *out, const char *text)
{
    size_t n = strlen(text);
    while (n > 0 && text[n - 1] == ' ')
        n--;
    fputs(" ", out);
    for (size_t i = 0; i < n; i++) {
        if (strchr("|\\`*_<", text[i]))
            fputc('\\', out);
        fputc(text[i] == '\n' || text[i] == '\r' ? ' ' : text[i], out);
    }
    fputs(" |", out);
}

static void print_markdown_titles(const struct tmk_table *t, FILE *out)
{
    fputc('|', out);
    for (uint32_t c = 0; c < t->n_columns; c++)
        print_markdown_cell(out, has_titles(t) ? t->columns[c].title : "");
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
        print_text(t, out, style);
    t->has_printed = true;
    t->n_cells = 0;
    tmk_arena_fini(&t->texts);
    return 0;
}
