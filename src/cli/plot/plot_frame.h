/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_frame.h - the rectangle of a picture that data is drawn in, with its axes: which
 * point of the canvas a value has, grid, tics with round numbers, and lines across.
 *
 * y is in bytes, from 0 below to `most` above; x is what the picture has there. */
#ifndef TMK_CLI_PLOT_PLOT_FRAME_H
#define TMK_CLI_PLOT_PLOT_FRAME_H

#include <stdint.h>

#include "cli/plot/plot_picture.h"

struct tmk_plot_frame {
    const struct tmk_picture *picture;
    double left, top, width, height; /* on the canvas */
    double from, to;                 /* x at the left and the right edge */
    double most;                     /* bytes at the upper edge */
};

double tmk_plot_frame_x(const struct tmk_plot_frame *f, double x);
double tmk_plot_frame_y(const struct tmk_plot_frame *f, double bytes);

/* Draw the grid from left to right with its sizes, and their unit above. */
void tmk_plot_frame_sizes(const struct tmk_plot_frame *f);
/* Draw the line at the bottom, and `name` below it. */
void tmk_plot_frame_bottom(const struct tmk_plot_frame *f, const char *name);
/* Draw a tic and its text below the bottom. */
void tmk_plot_frame_tic(const struct tmk_plot_frame *f, double x, const char *text);
/* Draw tics at round numbers, about `n` of them. `least` is the least distance; 0: any. */
void tmk_plot_frame_numbers(const struct tmk_plot_frame *f, unsigned n, double least);
/* Draw a dashed line across at the limit, if it is in the frame. */
void tmk_plot_frame_limit(const struct tmk_plot_frame *f, double bytes);
/* Fill the frame with the colours of a heat map from below to above, their sizes at its left. */
void tmk_plot_frame_scale(const struct tmk_plot_frame *f);

#endif
