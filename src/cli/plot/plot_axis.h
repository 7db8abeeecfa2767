/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_axis.h - the x axis of pictures over time: by time, or with all steps equally wide.
 *
 * The first step of a training may take as long as the next hundred, and imports and the end take
 * time too; an axis of steps gives each step the same room. It is still a time axis, but piecewise
 * linear between a few knots. The time before the first step has a place at the left, the time
 * after the last one at the right. */
#ifndef TMK_CLI_PLOT_PLOT_AXIS_H
#define TMK_CLI_PLOT_PLOT_AXIS_H

#include "cli/plot/plot.h"
#include "cli/plot/plot_frame.h"
#include "passes/steps.h"

struct tmk_plot_knot {
    uint64_t ns; /* trace time */
    double x;
};

struct tmk_plot_axis {
    const struct tmk_plot *plot;
    bool by_step;
    struct tmk_steps *steps;
    uint64_t first_row, n_rows; /* steps that are shown */
    struct tmk_plot_knot *knots;
    uint64_t n_knots;
    struct tmk_plot_unit unit; /* unit of time; its size is not used by step */
};

/* Init: 0, or an exit status after a message. fini takes a zeroed one. */
int tmk_plot_axis_init(struct tmk_plot_axis *a, const struct tmk_plot *plot);
void tmk_plot_axis_fini(struct tmk_plot_axis *a);

double tmk_plot_axis_start(const struct tmk_plot_axis *a);
double tmk_plot_axis_end(const struct tmk_plot_axis *a);
/* Whether the axis has that time; if not, x is that of its nearer end. */
bool tmk_plot_axis_has(const struct tmk_plot_axis *a, uint64_t ns);
double tmk_plot_axis_x(const struct tmk_plot_axis *a, uint64_t ns);
/* The step at that time; TMK_NO_STEP: none that the axis knows. */
int64_t tmk_plot_axis_step(const struct tmk_plot_axis *a, uint64_t ns);
/* Cut the axis into `n` parts of equal width: n + 1 times; the caller's. */
uint64_t *tmk_plot_axis_cut(const struct tmk_plot_axis *a, uint32_t n);

/* Draw the frame's bottom with its tics; with an axis by time also the steps, above the frame. */
void tmk_plot_axis_draw(const struct tmk_plot_axis *a, const struct tmk_plot_frame *f);

#endif
