/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_style.h - what all pictures may be told: which theme, which title. */
#ifndef TMK_CLI_PLOT_PLOT_STYLE_H
#define TMK_CLI_PLOT_PLOT_STYLE_H

#include <stdbool.h>

/* Zeroed: light, with a title of its own. */
struct tmk_plot_style {
    bool dark;
    const char *title; /* instead of the picture's own; NULL: that */
};

#endif
