/* SPDX-License-Identifier: MIT */
/* cli/plot/gnuplot.h - draw pictures with gnuplot: PNG, SVG or PDF by the file's suffix, all in one
 * style, light or dark.
 *
 *     struct tmk_gnuplot *g = NULL;
 *     if ((status = tmk_gnuplot_open(path, &g)) != 0)
 *         return status;
 *     FILE *script = tmk_gnuplot_script(g);
 *     fputs("plot sin(x)\n", script);
 *     status = tmk_gnuplot_close(g);
 *
 * The script begins with terminal, font, grid and colours set. Foreign texts go through
 * tmk_gnuplot_text(), so that they are always text, never a command. Characters that the font lacks
 * (Chinese) come from any other installed font; without one they are boxes.
 *
 * Sizes are in points of a PNG, which is TMK_PICTURE_WIDTH wide; SVG and PDF have the same
 * proportions. */
#ifndef TMK_CLI_PLOT_GNUPLOT_H
#define TMK_CLI_PLOT_GNUPLOT_H

#include <stdio.h>

#include "cli/output/palette.h"
#include "cli/plot/plot_style.h"

struct tmk_gnuplot;

enum { TMK_PICTURE_WIDTH = 1280, TMK_PICTURE_HEIGHT = 640 };

/* Check that a picture could be made at `path`. 0, or an exit status after a message with what to
 * do. It is for commands that work for long before they draw. */
int tmk_gnuplot_check(const char *path);

/* Whether such a file stores each line. Then draw fewer points. */
bool tmk_gnuplot_is_vector(const char *path);

/* Begin the script of a picture of that height. 0, or an exit status after a message, with *ret
 * untouched. */
int tmk_gnuplot_open(const char *path, const struct tmk_plot_style *style, unsigned height,
                     struct tmk_gnuplot **ret);
/* The file to write the script to; borrowed until close. */
FILE *tmk_gnuplot_script(struct tmk_gnuplot *g);
/* Draw the picture and close. 0, or an exit status after a message. An earlier picture is kept
 * then, and also when a signal ends us, which ends gnuplot too. */
int tmk_gnuplot_close(struct tmk_gnuplot *g);
/* The font size that corresponds to `points` in a PNG, where a text has 12. */
double tmk_gnuplot_points(const struct tmk_gnuplot *g, double points);
const struct tmk_theme *tmk_gnuplot_theme(const struct tmk_gnuplot *g);

/* Write `text` as a string of the script (kit/gnuplot_word.h). */
void tmk_gnuplot_text(FILE *script, const char *text);
/* The same, cut to `columns` columns. */
void tmk_gnuplot_short_text(FILE *script, const char *text, unsigned columns);
/* The same, but keep the end: "...layers.0.mlp". */
void tmk_gnuplot_tail_text(FILE *script, const char *text, unsigned columns);
/* The same two for labels of tics, which gnuplot parses differently. */
void tmk_gnuplot_tic(FILE *script, const char *text, unsigned columns);
void tmk_gnuplot_tail_tic(FILE *script, const char *text, unsigned columns);
/* Write the picture's title, or the style's title instead, above the key. Pictures without a key,
 * or with several graphs, use heading: it makes room at the top itself, and has a line for a note,
 * NULL: none. */
void tmk_gnuplot_title(struct tmk_gnuplot *g, const char *text);
void tmk_gnuplot_heading(struct tmk_gnuplot *g, const char *text, const char *note);

#endif
