/* SPDX-License-Identifier: MIT */
/* cli/plot_survey.c - see plot_survey.h. */
#include "cli/plot_survey.h"

#include <stdlib.h>

#include "cli/xalloc.h"

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
