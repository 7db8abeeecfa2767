/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_survey.h - functions that the pictures of a sweep share; their data is
 * sweep/survey.h's. */
#ifndef TMK_CLI_PLOT_PLOT_SURVEY_H
#define TMK_CLI_PLOT_PLOT_SURVEY_H

#include "cli/plot/plot_picture.h"
#include "sweep/survey.h"

/* Add the meaning of a sign to a note, *note NULL at first; a NULL text adds nothing. */
void tmk_survey_note(char **note, const char *text);
/* The capacity, if pictures have a line for it: it is known, and not far above the peaks; else 0.
 */
uint64_t tmk_survey_limit(const struct tmk_survey *g);
/* The sweep's title with `what` the picture shows; the caller's. */
char *tmk_survey_title(const struct tmk_survey *g, const char *what);

/* The pictures that tmk_plot_sweep_picture() dispatches to: each opens `p` and draws it. */
struct tmk_survey_picture {
    void (*draw)(const struct tmk_survey *g, const char *path, const struct tmk_plot_style *style,
                 struct tmk_picture *p);
};

extern const struct tmk_survey_picture tmk_survey_overview;
extern const struct tmk_survey_picture tmk_survey_heatmap;
extern const struct tmk_survey_picture tmk_survey_components;
extern const struct tmk_survey_picture tmk_survey_operations;

#endif
