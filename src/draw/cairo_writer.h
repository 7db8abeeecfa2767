/* SPDX-License-Identifier: MIT */
/* draw/cairo_writer.h - print a canvas as a PNG or a PDF, with the machine's cairo and Pango.
 *
 * They are loaded when the first picture needs them, so neither building nor starting the program
 * does, and the packages of a machine without a screen stay small. An SVG (svg_writer.h) never
 * needs them. */
#ifndef TMK_DRAW_CAIRO_WRITER_H
#define TMK_DRAW_CAIRO_WRITER_H

#include <stdio.h>

#include "base/error.h"

struct tmk_canvas;

/* The Debian package that has what is loaded. */
#define TMK_CAIRO_PACKAGE "libpangocairo-1.0-0"

enum { TMK_PNG_PIXELS = 2 /* of a PNG for each point of a canvas, in both directions */ };

/* Load the libraries: 0, or TMK_ENOENT with the reason in *err. Once loaded they stay. */
int tmk_cairo_load(struct tmk_error *err);

/* Print the canvas to `out`. 0, or TMK_E* with the reason in *err. */
int tmk_cairo_write_png(const struct tmk_canvas *c, FILE *out, struct tmk_error *err);
int tmk_cairo_write_pdf(const struct tmk_canvas *c, FILE *out, struct tmk_error *err);

#endif
