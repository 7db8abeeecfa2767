/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_legend.h - what colours mean, in as many rows as that takes.
 *
 * gnuplot's own legend makes its room where it finds some: of a graph in a picture of several it
 * grows over what stands above it. Here the number of rows is known before, and the picture is made
 * as high as they need. Texts are taken to be as wide as their columns. */
#ifndef TMK_CLI_PLOT_PLOT_LEGEND_H
#define TMK_CLI_PLOT_PLOT_LEGEND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/plot/palette.h"

enum { TMK_LEGEND_ROW = 22 /* points */, TMK_LEGEND_LONGEST = 40 /* columns of a text */ };

#define TMK_LETTER 0.0075 /* of the picture's width, a column of text */

struct tmk_legend_item {
    const char *text;
    const char *colour; /* NULL: a word before the others, without a mark */
};

struct tmk_legend {
    const struct tmk_legend_item *items;
    uint32_t n;
    double left, width; /* of the picture's width */
    bool is_disc;       /* marks: else squares */
};

/* 0 when there are no items. */
unsigned tmk_legend_rows(const struct tmk_legend *l);
/* Labels for the next graph; the last row stands at `bottom` points of a picture so high. */
void tmk_legend_put(const struct tmk_legend *l, FILE *out, const struct tmk_theme *theme,
                    double bottom, unsigned height);

#endif
