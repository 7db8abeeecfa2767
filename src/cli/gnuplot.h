/* SPDX-License-Identifier: MIT */
/* cli/gnuplot.h - pictures, drawn by gnuplot: PNG, SVG or PDF by the file's suffix, all in one
 * look.
 *
 *     struct tmk_gnuplot *g = NULL;
 *     if ((status = tmk_gnuplot_open(path, &g)) != 0)
 *         return status;
 *     FILE *script = tmk_gnuplot_script(g);
 *     fputs("plot sin(x)\n", script);
 *     status = tmk_gnuplot_close(g);
 *
 * The script begins with terminal, font, grid and colours set. Texts of others go through
 * tmk_gnuplot_text(): what they hold is then text, never a command. */
#ifndef TMK_CLI_GNUPLOT_H
#define TMK_CLI_GNUPLOT_H

#include <stdio.h>

struct tmk_gnuplot;

/* Could a picture be made there? 0, or an exit status after a message: what is to be done about it.
 * For commands that work for long before they draw. */
int tmk_gnuplot_check(const char *path);

/* Begin a script. 0, or an exit status after a message and *ret untouched. */
int tmk_gnuplot_open(const char *path, struct tmk_gnuplot **ret);
/* Where to write the script; borrowed until close. */
FILE *tmk_gnuplot_script(struct tmk_gnuplot *g);
/* Let it draw. 0, or an exit status after a message; a picture of before is
 * kept then. */
int tmk_gnuplot_close(struct tmk_gnuplot *g);

/* `text` as a quoted word of the script. */
void tmk_gnuplot_text(FILE *script, const char *text);
/* The picture's title. */
void tmk_gnuplot_title(FILE *script, const char *text);
/* "#4393c3": the colour of the i-th of several things that are alike. */
const char *tmk_gnuplot_colour(unsigned i);

#endif
