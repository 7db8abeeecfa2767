/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_legend.h - a legend: rows of names, as many as needed, or a column of names with
 * their sizes.
 *
 * Where it goes and what it takes is known before anything is drawn (draw/canvas.h has the widths
 * of texts), so the picture is made to fit it. */
#ifndef TMK_CLI_PLOT_PLOT_LEGEND_H
#define TMK_CLI_PLOT_PLOT_LEGEND_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/plot/plot_picture.h"

enum { TMK_LEGEND_ROW = 20 /* points */, TMK_LEGEND_LONGEST = 260 /* points of a text */ };

enum tmk_legend_mark {
    TMK_LEGEND_SQUARE,
    TMK_LEGEND_DISC,
    TMK_LEGEND_LINE,
    TMK_LEGEND_DASHED,
    TMK_LEGEND_DOTTED,
};

struct tmk_legend_item {
    const char *text;
    uint32_t colour; /* 0: a heading before the others, without a mark */
    enum tmk_legend_mark mark;
    const char *size; /* a column's, at its right edge; NULL: none */
};

struct tmk_legend {
    const struct tmk_legend_item *items;
    uint32_t n;
    double left, width; /* points */
};

/* The number of rows that the items need; 0: there are no items. */
unsigned tmk_legend_rows(const struct tmk_legend *l);
/* Draw them from `top` downwards. */
void tmk_legend_draw(const struct tmk_legend *l, const struct tmk_picture *p, double top);
/* The width of a column of these items, and the column itself, an item in each row. An item without
 * a text leaves half a row free. */
double tmk_legend_column_width(const struct tmk_legend_item *items, uint32_t n, double most);
void tmk_legend_column(const struct tmk_legend *l, const struct tmk_picture *p, double top);

#endif
