/* SPDX-License-Identifier: MIT */
/* draw/svg_writer.h - print a canvas as an SVG: no library is needed, texts stay texts, and it is
 * the same bytes for the same canvas on every machine. */
#ifndef TMK_DRAW_SVG_WRITER_H
#define TMK_DRAW_SVG_WRITER_H

#include <stdio.h>

struct tmk_canvas;

/* Whether writing worked is for the caller to ask of `out`. */
void tmk_svg_write(const struct tmk_canvas *c, FILE *out);

#endif
