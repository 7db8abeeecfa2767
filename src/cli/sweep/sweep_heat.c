/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_heat.c - the page's heat map: the peak for all values of the two parameters that
 * matter most, with the others as in the largest configuration. Estimates and OOMs are marked. */
#include <math.h>
#include <string.h>

#include "cli/output/html.h"
#include "cli/sweep/sweep_answer.h"
#include "kit/amount.h"
#include "sweep/advice.h"
#include "sweep/fit.h"
#include "sweep/params.h"
#include "sweep/results.h"
#include "sweep/survey.h"

/* Find the most important parameter behind *at in the survey's order; false: no other changes the
 * peak. */
static bool find_param(const struct tmk_sweep_answer *v, uint32_t *at, uint32_t *ret)
{
    while (v->g->fit && *at < v->g->n_order) {
        *ret = v->g->order[(*at)++];
        if (v->r->params[*ret].numbers && tmk_advice_matters(v->r, &v->advice, *ret))
            return true;
    }
    return false;
}

static void put_place(FILE *out, const struct tmk_survey *g, const struct tmk_survey_config *c)
{
    struct tmk_estimate e;
    char size[TMK_AMOUNT_BYTES];
    bool is_estimated = tmk_survey_is_estimated(g, c, &e);
    double bytes = is_estimated ? e.bytes : c->has_peak ? (double)c->cell->peak_allocated : 0;
    bool has_reason = !c->has_peak && c->cell->outcome != TMK_CELL_PENDING;
    const char *why = has_reason ? tmk_cell_outcome_name(c->cell->outcome) : c->repeats;
    fprintf(out, "<td class=\"n%s\" style=\"background:rgba(9,105,218,%.2f)\">",
            is_estimated ? " est" : "", 0.55 * fmin(bytes / (double)g->most, 1));
    if (bytes == 0)
        fputs("-", out);
    else
        fprintf(out, "%s%s", is_estimated ? "≈ " : "", tmk_size_text(tmk_size_whole(bytes), size));
    if (why)
        fprintf(out, " <span class=\"bad\">%s</span>", why);
    fputs("</td>", out);
}

void tmk_sweep_write_heat(FILE *out, const struct tmk_sweep_answer *v)
{
    uint32_t at = 0, p, q, choice[TMK_SWEEP_MAX_PARAMS];
    if (!v->g->largest || !find_param(v, &at, &p) || !find_param(v, &at, &q))
        return;
    const struct tmk_sweep_param *down = &v->r->params[p], *across = &v->r->params[q];
    memcpy(choice, v->g->largest->cell->choice, v->r->n_params * sizeof *choice);
    tmk_html_element(out, "h2", "Peak by %s and %s", down->name, across->name);
    tmk_html_element(out, "p class=\"faint\"",
                     "The other values as in the largest configuration. ≈: estimated.%s%s",
                     v->g->repeats_note ? " " : "", v->g->repeats_note ? v->g->repeats_note : "");
    fputs("<div class=\"scroll\"><table class=\"heat\">\n<tr><th>", out);
    tmk_html_text(out, down->name);
    fputs(" ↓ ", out);
    tmk_html_text(out, across->name);
    fputs(" →</th>", out);
    for (uint32_t j = 0; j < across->n_values; j++)
        tmk_html_element(out, "th class=\"n\"", "%s", across->values[j]);
    fputs("</tr>\n", out);
    for (choice[p] = 0; choice[p] < down->n_values; choice[p]++) {
        fputs("<tr>", out);
        tmk_html_element(out, "th class=\"n\"", "%s", down->values[choice[p]]);
        for (choice[q] = 0; choice[q] < across->n_values; choice[q]++)
            put_place(out, v->g, tmk_survey_at(v->g, choice));
        fputs("</tr>\n", out);
    }
    fputs("</table></div>\n", out);
}
