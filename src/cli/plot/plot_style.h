/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_style.h - options of all pictures: theme and title. */
#ifndef TMK_CLI_PLOT_PLOT_STYLE_H
#define TMK_CLI_PLOT_PLOT_STYLE_H

#include <stdbool.h>

/* Zeroed: light, with the picture's own title. */
struct tmk_plot_style {
    bool dark;
    const char *title; /* instead of the picture's own; NULL: that */
};

#endif
