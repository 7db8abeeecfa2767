/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_survey.c - see plot_survey.h. */
#include "cli/plot/plot_survey.h"

#include <stdlib.h>

#include "cli/output/xalloc.h"
#include "sweep/results.h"

void tmk_survey_note(char **note, const char *text)
{
    if (!text)
        return;
    char *longer = tmk_xformat("%s%s%s", *note ? *note : "", *note ? "    " : "", text);
    free(*note);
    *note = longer;
}

char *tmk_survey_title(const struct tmk_survey *g, const char *what)
{
    return g->r->title && g->r->title[0] ? tmk_xformat("%s: %s", what, g->r->title)
                                         : tmk_xstrdup(what);
}

uint64_t tmk_survey_limit(const struct tmk_survey *g)
{
    bool has_refused = g->n_cells[TMK_CELL_OOM] || g->n_cells[TMK_CELL_HOPELESS];
    double near = has_refused ? 6 : 2;
    return (double)g->capacity < near * (double)g->most ? g->capacity : 0;
}
