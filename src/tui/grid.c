/* SPDX-License-Identifier: MIT */
/* tui/grid.c - see grid.h. */
#include "tui/grid.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/error.h"
#include "kit/utf8.h"

enum { ELLIPSIS = 0x2026, TEXT_BYTES = 1024 };

int tmk_grid_init(struct tmk_grid *g, unsigned width, unsigned height, bool ascii)
{
    struct tmk_screen_cell *cells = calloc((size_t)width * height + 1, sizeof *cells);
    if (!cells)
        return TMK_ENOMEM;
    for (size_t i = 0; i < (size_t)width * height; i++)
        cells[i].c = ' ';
    *g = (struct tmk_grid){.width = width, .height = height, .ascii = ascii, .cells = cells};
    return 0;
}

void tmk_grid_fini(struct tmk_grid *g)
{
    free(g->cells);
    *g = (struct tmk_grid){0};
}

struct tmk_screen_cell *tmk_grid_cell(const struct tmk_grid *g, unsigned x, unsigned y)
{
    return x < g->width && y < g->height ? &g->cells[(size_t)y * g->width + x] : NULL;
}

/* Blank what would be left of wide characters that are overwritten in part. */
static void clear_halves(struct tmk_grid *g, unsigned x, unsigned y, size_t columns)
{
    struct tmk_screen_cell *first = tmk_grid_cell(g, x, y);
    struct tmk_screen_cell *next = tmk_grid_cell(g, x + (unsigned)columns, y);
    if (first && first->c == 0 && x > 0)
        tmk_grid_cell(g, x - 1, y)->c = ' ';
    if (next && next->c == 0)
        next->c = ' ';
}

/* Put one character; a wide one becomes a blank if its right half lies outside. */
static void put_one(struct tmk_grid *g, unsigned x, unsigned y, size_t columns, enum tmk_ink ink,
                    uint32_t c)
{
    struct tmk_screen_cell *cell = tmk_grid_cell(g, x, y), *next = tmk_grid_cell(g, x + 1, y);
    if (!cell)
        return;
    bool is_foreign = g->ascii && c > '~';
    clear_halves(g, x, y, columns);
    *cell = (struct tmk_screen_cell){.c = is_foreign ? '?' : c, .ink = ink};
    if (columns < 2)
        return;
    if (!next)
        cell->c = ' ';
    else
        *next = (struct tmk_screen_cell){.c = is_foreign ? '?' : 0, .ink = ink};
}

/* Put as much of `text` as fits. */
static unsigned put_fitting(struct tmk_grid *g, unsigned x, unsigned y, unsigned end,
                            enum tmk_ink ink, const char *text)
{
    size_t columns;
    for (uint32_t c; (c = tmk_utf8_shown(&text, &columns)) != 0 && x + columns <= end;) {
        if (columns == 0) /* an accent: the letter is readable without it */
            continue;
        put_one(g, x, y, columns, ink, c);
        x += (unsigned)columns;
    }
    return x;
}

static unsigned put_ellipsis(struct tmk_grid *g, unsigned x, unsigned y, enum tmk_ink ink)
{
    put_one(g, x, y, 1, ink, g->ascii ? '~' : ELLIPSIS);
    return x + 1;
}

unsigned tmk_grid_put(struct tmk_grid *g, unsigned x, unsigned y, unsigned width, enum tmk_ink ink,
                      const char *text)
{
    if (width == 0)
        return x;
    if (tmk_utf8_width(text) <= width)
        return put_fitting(g, x, y, x + width, ink, text);
    return put_ellipsis(g, put_fitting(g, x, y, x + width - 1, ink, text), y, ink);
}

unsigned tmk_grid_put_end(struct tmk_grid *g, unsigned x, unsigned y, unsigned width,
                          enum tmk_ink ink, const char *text)
{
    size_t n = tmk_utf8_width(text), columns;
    if (width == 0 || n <= width)
        return tmk_grid_put(g, x, y, width, ink, text);
    for (; n > width - 1; n -= columns)
        tmk_utf8_shown(&text, &columns);
    return put_fitting(g, put_ellipsis(g, x, y, ink), y, x + width, ink, text);
}

unsigned tmk_grid_putf(struct tmk_grid *g, unsigned x, unsigned y, unsigned width, enum tmk_ink ink,
                       const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return tmk_grid_put(g, x, y, width, ink, text);
}

void tmk_grid_right(struct tmk_grid *g, unsigned x, unsigned y, unsigned width, enum tmk_ink ink,
                    const char *text)
{
    size_t n = tmk_utf8_width(text);
    unsigned indent = n < width ? width - (unsigned)n : 0;
    tmk_grid_put(g, x + indent, y, width - indent, ink, text);
}

void tmk_grid_fill(struct tmk_grid *g, unsigned x, unsigned y, unsigned n, enum tmk_ink ink,
                   uint32_t c)
{
    for (unsigned i = 0; i < n && x + i < g->width; i++)
        put_one(g, x + i, y, 1, ink, c);
}

void tmk_grid_ink(struct tmk_grid *g, unsigned x, unsigned y, unsigned n, enum tmk_ink ink)
{
    for (unsigned i = 0; i < n && x + i < g->width; i++) {
        struct tmk_screen_cell *cell = tmk_grid_cell(g, x + i, y);
        if (cell)
            cell->ink = ink;
    }
}

/* ---- as text ---- */

unsigned tmk_grid_encode(uint32_t c, char to[5])
{
    unsigned n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (unsigned i = n; i-- > 1; c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(lead[n] | c);
    to[n] = '\0';
    return n;
}

void tmk_grid_write(const struct tmk_grid *g, FILE *out)
{
    char text[5] = "";
    for (unsigned y = 0; y < g->height; y++) {
        unsigned end = g->width;
        while (end > 0 && tmk_grid_cell(g, end - 1, y)->c == ' ')
            end--;
        for (unsigned x = 0; x < end; x++) {
            uint32_t c = tmk_grid_cell(g, x, y)->c;
            if (c == 0)
                continue;
            tmk_grid_encode(c, text);
            fputs(text, out);
        }
        fputc('\n', out);
    }
}
