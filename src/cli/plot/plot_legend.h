/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_legend.h - a legend of colours, in as many rows as needed.
 *
 * gnuplot's own legend does not reserve room: in a picture of several graphs it grows over what is
 * above it. Here the number of rows is known before, and the picture is made high enough. Texts are
 * assumed to be as wide as their columns. */
#ifndef TMK_CLI_PLOT_PLOT_LEGEND_H
#define TMK_CLI_PLOT_PLOT_LEGEND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/output/palette.h"

enum { TMK_LEGEND_ROW = 22 /* points */, TMK_LEGEND_LONGEST = 40 /* columns of a text */ };

#define TMK_LETTER 0.0075 /* of the picture's width, a column of text */

struct tmk_legend_item {
    const char *text;
    const char *colour; /* NULL: a heading before the others, without a mark */
};

struct tmk_legend {
    const struct tmk_legend_item *items;
    uint32_t n;
    double left, width; /* of the picture's width */
    bool is_disc;       /* marks are discs, else squares */
};

/* The number of rows; 0: there are no items. */
unsigned tmk_legend_rows(const struct tmk_legend *l);
/* Write labels for the next graph; the last row is at `bottom` points of a picture of that
 * height. */
void tmk_legend_put(const struct tmk_legend *l, FILE *out, const struct tmk_theme *theme,
                    double bottom, unsigned height);

#endif
