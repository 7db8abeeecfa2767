/* SPDX-License-Identifier: MIT */
/* tui/grid.h - a screen as data: cells with a character and an ink each.
 *
 * What draws, draws here; curses only carries it to a terminal, and a test writes it as text. All
 * that would lie outside is cut off, so that no picture has to ask whether it fits. */
#ifndef TMK_TUI_GRID_H
#define TMK_TUI_GRID_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* What a cell means; screen.c decides how that looks on a terminal. */
enum tmk_ink {
    TMK_INK_PLAIN,
    TMK_INK_DIM,
    TMK_INK_STRONG,
    TMK_INK_TITLE,
    TMK_INK_HEAD,     /* titles of a table */
    TMK_INK_SORTED,   /* the one that it is sorted by */
    TMK_INK_SELECTED, /* a row */
    TMK_INK_GOOD,
    TMK_INK_WARN,
    TMK_INK_BAD,
    TMK_INK_GRAPH,
    TMK_INK_KEY,
    TMK_INK_N,
};

struct tmk_screen_cell {
    uint32_t c; /* 0: the right half of a wide character */
    uint32_t ink;
};

struct tmk_grid {
    unsigned width, height;
    bool ascii; /* other characters become '?' */
    struct tmk_screen_cell *cells;
};

/* Blank. 0 or TMK_ENOMEM. fini takes a zeroed one. */
int tmk_grid_init(struct tmk_grid *g, unsigned width, unsigned height, bool ascii);
void tmk_grid_fini(struct tmk_grid *g);
/* NULL outside. */
struct tmk_screen_cell *tmk_grid_cell(const struct tmk_grid *g, unsigned x, unsigned y);

/* `text` in at most `width` columns, cut by an ellipsis. Returns the column behind it. */
unsigned tmk_grid_put(struct tmk_grid *g, unsigned x, unsigned y, unsigned width, enum tmk_ink ink,
                      const char *text);
unsigned tmk_grid_putf(struct tmk_grid *g, unsigned x, unsigned y, unsigned width, enum tmk_ink ink,
                       const char *format, ...) __attribute__((format(printf, 6, 7)));
/* The same of a text whose end says more: the ellipsis stands for its beginning. */
unsigned tmk_grid_put_end(struct tmk_grid *g, unsigned x, unsigned y, unsigned width,
                          enum tmk_ink ink, const char *text);
/* As put, at the right end of the field. */
void tmk_grid_right(struct tmk_grid *g, unsigned x, unsigned y, unsigned width, enum tmk_ink ink,
                    const char *text);
/* `n` times the character. */
void tmk_grid_fill(struct tmk_grid *g, unsigned x, unsigned y, unsigned n, enum tmk_ink ink,
                   uint32_t c);
/* Other ink for what is there. */
void tmk_grid_ink(struct tmk_grid *g, unsigned x, unsigned y, unsigned n, enum tmk_ink ink);

/* As text: a line a row, without blanks at its end. */
void tmk_grid_write(const struct tmk_grid *g, FILE *out);

/* `c` as UTF-8 with a zero byte behind; returns its length. */
unsigned tmk_grid_encode(uint32_t c, char to[5]);

#endif
