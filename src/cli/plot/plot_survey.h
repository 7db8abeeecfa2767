/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_survey.h - what the pictures of a sweep have in common; the data is
 * sweep/survey.h's. */
#ifndef TMK_CLI_PLOT_PLOT_SURVEY_H
#define TMK_CLI_PLOT_PLOT_SURVEY_H

#include "cli/plot/gnuplot.h"
#include "sweep/survey.h"

/* Add what a sign means to a note of several, *note NULL at first; NULL adds nothing. */
void tmk_survey_note(char **note, const char *text);
/* The sweep's title for `what` of it; the caller's. */
char *tmk_survey_title(const struct tmk_survey *g, const char *what);

/* The pictures, script and all; what tmk_plot_sweep_picture() dispatches to. */
struct tmk_survey_picture {
    unsigned (*height)(const struct tmk_survey *g);
    void (*put)(const struct tmk_survey *g, struct tmk_gnuplot *plot);
};

extern const struct tmk_survey_picture tmk_survey_overview;
extern const struct tmk_survey_picture tmk_survey_heatmap;
extern const struct tmk_survey_picture tmk_survey_components;
extern const struct tmk_survey_picture tmk_survey_operations;

#endif
