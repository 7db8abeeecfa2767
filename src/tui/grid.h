/* SPDX-License-Identifier: MIT */
/* tui/grid.h - a screen as data: cells with a character and an ink each.
 *
 * All pictures draw on a grid; curses only copies it to a terminal, and tests write it as text.
 * Anything outside is cut off, so no picture has to check whether it fits. */
#ifndef TMK_TUI_GRID_H
#define TMK_TUI_GRID_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The meaning of a cell; screen.c decides how that looks on a terminal. */
enum tmk_ink {
    TMK_INK_PLAIN,
    TMK_INK_DIM,
    TMK_INK_STRONG,
    TMK_INK_TITLE,
    TMK_INK_HEAD,     /* titles of a table */
    TMK_INK_SORTED,   /* title of the column that sorts the table */
    TMK_INK_SELECTED, /* the selected row */
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

/* Make a blank grid. 0 or TMK_ENOMEM. fini takes a zeroed one. */
int tmk_grid_init(struct tmk_grid *g, unsigned width, unsigned height, bool ascii);
void tmk_grid_fini(struct tmk_grid *g);
/* The cell at a position; NULL: outside. */
struct tmk_screen_cell *tmk_grid_cell(const struct tmk_grid *g, unsigned x, unsigned y);

/* Write `text` in at most `width` columns, cut with an ellipsis. Returns the column behind it. */
unsigned tmk_grid_put(struct tmk_grid *g, unsigned x, unsigned y, unsigned width, enum tmk_ink ink,
                      const char *text);
unsigned tmk_grid_putf(struct tmk_grid *g, unsigned x, unsigned y, unsigned width, enum tmk_ink ink,
                       const char *format, ...) __attribute__((format(printf, 6, 7)));
/* The same for a text with the more important part at its end: the ellipsis replaces its
 * beginning. */
unsigned tmk_grid_put_end(struct tmk_grid *g, unsigned x, unsigned y, unsigned width,
                          enum tmk_ink ink, const char *text);
/* Write like put, aligned to the right end of the field. */
void tmk_grid_right(struct tmk_grid *g, unsigned x, unsigned y, unsigned width, enum tmk_ink ink,
                    const char *text);
/* Write a character `n` times. */
void tmk_grid_fill(struct tmk_grid *g, unsigned x, unsigned y, unsigned n, enum tmk_ink ink,
                   uint32_t c);
/* Change the ink of existing cells. */
void tmk_grid_ink(struct tmk_grid *g, unsigned x, unsigned y, unsigned n, enum tmk_ink ink);

/* Write the grid as text: a line for each row, without blanks at its end. */
void tmk_grid_write(const struct tmk_grid *g, FILE *out);

/* Encode `c` as UTF-8 with a zero byte behind; returns its length. */
unsigned tmk_grid_encode(uint32_t c, char to[5]);

#endif
