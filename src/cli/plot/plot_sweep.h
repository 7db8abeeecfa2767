/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_sweep.h - the pictures of a sweep: how memory grows with each parameter, which
 * configurations fit, and what uses their memory.
 *
 *     tmk_plot_sweep(&survey, TMK_PLOT_BASIC | TMK_PLOT_DETAILED, &(struct tmk_plot_style){0})
 *
 * makes all of them in the sweep's folder, by these names:
 *
 *     basic     memory_analysis_overview.png      peak against each parameter
 *               memory_heatmap.png                peak of every cell of the grid
 *               memory_timeline_config_<n>.png    a run each; n is the cell's number, from 1
 *     detailed  detailed_memory_analysis.png      components and categories of each configuration
 *               operation_level_breakdown.png     stages of each configuration
 *
 * The survey's fit draws lines through the measured cells, and estimates of other cells, marked as
 * such; without a fit only measured cells are drawn. A configuration is represented by its deciding
 * cell (sweep/survey.h). If nothing was measured, the result is TMK_EXIT_FINDING after a message.
 * Pictures do not change the results: if Pango is missing, a message says so and the sweep stays
 * valid. */
#ifndef TMK_CLI_PLOT_PLOT_SWEEP_H
#define TMK_CLI_PLOT_PLOT_SWEEP_H

#include "cli/plot/plot_style.h"
#include "sweep/survey.h"

enum tmk_sweep_picture {
    TMK_SWEEP_OVERVIEW,
    TMK_SWEEP_HEATMAP,
    TMK_SWEEP_COMPONENTS,
    TMK_SWEEP_OPERATIONS,
    TMK_N_SWEEP_PICTURES,
};

enum { TMK_PLOT_BASIC = 1, TMK_PLOT_DETAILED = 2 };

/* Draw all pictures of `sets` into r->folder, with progress on stderr. 0, or an exit status after a
 * message; after a failure the other pictures are still drawn. */
int tmk_plot_sweep(const struct tmk_survey *g, unsigned sets, const struct tmk_plot_style *style);

/* Draw one of them to a file of any of the three kinds. 0, or an exit status after a message. */
int tmk_plot_sweep_picture(const struct tmk_survey *g, enum tmk_sweep_picture which,
                           const struct tmk_plot_style *style, const char *path);

#endif
