/* SPDX-License-Identifier: MIT */
/* cli/plot/gnuplot.h - pictures, drawn by gnuplot: PNG, SVG or PDF by the file's suffix, all in one
 * look, light or dark.
 *
 *     struct tmk_gnuplot *g = NULL;
 *     if ((status = tmk_gnuplot_open(path, &g)) != 0)
 *         return status;
 *     FILE *script = tmk_gnuplot_script(g);
 *     fputs("plot sin(x)\n", script);
 *     status = tmk_gnuplot_close(g);
 *
 * The script begins with terminal, font, grid and colours set. Texts of others go through
 * tmk_gnuplot_text(): what they hold is then text, never a command. Characters that the font lacks
 * (Chinese) come from any other font that is installed; without one they are boxes.
 *
 * Sizes are in points of a PNG, which is TMK_PICTURE_WIDTH wide; SVG and PDF have the same
 * proportions. */
#ifndef TMK_CLI_PLOT_GNUPLOT_H
#define TMK_CLI_PLOT_GNUPLOT_H

#include <stdio.h>

#include "cli/plot/palette.h"
#include "cli/plot/plot_style.h"

struct tmk_gnuplot;

enum { TMK_PICTURE_WIDTH = 1280, TMK_PICTURE_HEIGHT = 640 };

/* Could a picture be made there? 0, or an exit status after a message: what is to be done about it.
 * For commands that work for long before they draw. */
int tmk_gnuplot_check(const char *path);

/* Are lines kept in such a file one by one? Then fewer points will do. */
bool tmk_gnuplot_is_vector(const char *path);

/* Begin a script of a picture so high. 0, or an exit status after a message and *ret untouched. */
int tmk_gnuplot_open(const char *path, const struct tmk_plot_style *style, unsigned height,
                     struct tmk_gnuplot **ret);
/* Where to write the script; borrowed until close. */
FILE *tmk_gnuplot_script(struct tmk_gnuplot *g);
/* Let it draw. 0, or an exit status after a message; a picture of before is kept then, and when a
 * signal ends us, which ends gnuplot too. */
int tmk_gnuplot_close(struct tmk_gnuplot *g);
/* The size of a font that would be so large in a PNG, where a text is 12. */
double tmk_gnuplot_points(const struct tmk_gnuplot *g, double points);
const struct tmk_theme *tmk_gnuplot_theme(const struct tmk_gnuplot *g);

/* `text` as a string of the script (kit/gnuplot_word.h). */
void tmk_gnuplot_text(FILE *script, const char *text);
/* The same of at most `columns` columns. */
void tmk_gnuplot_short_text(FILE *script, const char *text, unsigned columns);
/* The same, but its end is kept: "...layers.0.mlp". */
void tmk_gnuplot_tail_text(FILE *script, const char *text, unsigned columns);
/* The same two for labels of tics, which gnuplot reads otherwise. */
void tmk_gnuplot_tic(FILE *script, const char *text, unsigned columns);
void tmk_gnuplot_tail_tic(FILE *script, const char *text, unsigned columns);
/* The picture's title, or what the style has instead; above the key. Pictures without a key, or
 * with several graphs, take heading: it makes room at the top itself, and has a line for a note,
 * NULL: none. */
void tmk_gnuplot_title(struct tmk_gnuplot *g, const char *text);
void tmk_gnuplot_heading(struct tmk_gnuplot *g, const char *text, const char *note);

#endif
