/* SPDX-License-Identifier: MIT */
/* cli/sweep_heat.c - the page's heat map: the peak for all values of the two parameters that matter
 * most, the others as in the largest cell. What is estimated, or ran out of memory, is told apart.
 */
#include <math.h>

#include "cli/html.h"
#include "cli/sweep_story.h"
#include "kit/amount.h"

static double change_of(const struct tmk_influence *i)
{
    return i->shape >= TMK_INFLUENCE_LINEAR ? fabs(i->effect.bytes_to - i->effect.bytes_from) : 0;
}

/* The parameter that changes most, but for `other`; UINT32_MAX: none changes anything. */
static uint32_t find_param(const struct tmk_sweep_story *v, uint32_t other)
{
    uint32_t best = UINT32_MAX;
    double most = 0;
    for (uint32_t k = 0; k < v->advice.n_influences; k++) {
        const struct tmk_influence *i = &v->advice.influences[k];
        if (i->param != other && change_of(i) > most) {
            most = change_of(i);
            best = i->param;
        }
    }
    return best;
}

/* The first repeat of the cell that differs from the largest in these two alone. */
static uint32_t find_cell(const struct tmk_sweep_story *v, uint32_t p, uint32_t i, uint32_t q,
                          uint32_t j)
{
    const struct tmk_results *r = v->r;
    uint32_t number = 0;
    for (uint32_t k = 0; k < r->n_params; k++) {
        uint32_t own = r->cells[v->advice.largest].choice[k];
        number = number * r->params[k].n_values + (k == p ? i : k == q ? j : own);
    }
    return number * r->n_repeats;
}

static void put_place(FILE *out, const struct tmk_sweep_story *v, uint32_t c, double most)
{
    const struct tmk_cell *cell = &v->r->cells[c];
    struct tmk_estimate e;
    char size[TMK_AMOUNT_BYTES];
    bool is_estimated = tmk_sweep_is_estimated(v, c, &e);
    bool is_measured = tmk_cell_is_measured(cell);
    double bytes = is_estimated ? e.bytes : is_measured ? (double)cell->peak_allocated : 0;
    fprintf(out, "<td class=\"n%s\" style=\"background:rgba(9,105,218,%.2f)\">",
            is_estimated ? " est" : "", 0.55 * fmin(bytes / most, 1));
    if (bytes == 0)
        fputs("-", out);
    else
        fprintf(out, "%s%s", is_estimated ? "≈ " : "", tmk_size_text(tmk_size_whole(bytes), size));
    if (!is_measured && cell->outcome != TMK_CELL_PENDING)
        fprintf(out, " <span class=\"bad\">%s</span>", tmk_cell_outcome_name(cell->outcome));
    fputs("</td>", out);
}

void tmk_sweep_write_heat(FILE *out, const struct tmk_sweep_story *v)
{
    uint32_t p = find_param(v, UINT32_MAX), q = find_param(v, p);
    if (q == UINT32_MAX || v->advice.largest == UINT32_MAX)
        return;
    const struct tmk_sweep_param *down = &v->r->params[p], *across = &v->r->params[q];
    double most = (double)v->r->cells[v->advice.largest].peak_allocated;
    tmk_html_element(out, "h2", "Peak by %s and %s", down->name, across->name);
    tmk_html_element(out, "p class=\"faint\"",
                     "The other values as in the largest configuration. ≈: estimated.");
    fputs("<div class=\"scroll\"><table class=\"heat\">\n<tr><th>", out);
    tmk_html_text(out, down->name);
    fputs(" ↓ ", out);
    tmk_html_text(out, across->name);
    fputs(" →</th>", out);
    for (uint32_t j = 0; j < across->n_values; j++)
        tmk_html_element(out, "th class=\"n\"", "%s", across->values[j]);
    fputs("</tr>\n", out);
    for (uint32_t i = 0; i < down->n_values; i++) {
        fputs("<tr>", out);
        tmk_html_element(out, "th class=\"n\"", "%s", down->values[i]);
        for (uint32_t j = 0; j < across->n_values; j++)
            put_place(out, v, find_cell(v, p, i, q, j), most);
        fputs("</tr>\n", out);
    }
    fputs("</table></div>\n", out);
}
