/* SPDX-License-Identifier: MIT */
/* cli/plot_survey.c - see plot_survey.h. */
#include "cli/plot_survey.h"

#include <stdlib.h>
#include <string.h>

#include "cli/say.h"
#include "cli/xalloc.h"

/* ---- configurations ---- */

/* Its place among all choices: the grid's own order, without repeats. */
static uint64_t place_of(const struct tmk_results *r, const uint32_t *choice)
{
    uint64_t place = 0;
    for (uint32_t p = 0; p < r->n_params; p++)
        place = place * r->params[p].n_values + choice[p];
    return place;
}

static void take_cell(struct tmk_survey *g, uint32_t number)
{
    const struct tmk_cell *cell = &g->r->cells[number];
    struct tmk_survey_config *c = &g->configs[place_of(g->r, cell->choice)];
    bool good = tmk_cell_is_measured(cell);
    bool is_ill = cell->outcome != TMK_CELL_DONE && cell->outcome != TMK_CELL_PENDING &&
                  cell->outcome != TMK_CELL_EXCLUDED;
    c->n_well += cell->outcome == TMK_CELL_DONE;
    c->n_ill += is_ill;
    bool is_better = !c->cell || (good && !c->has_peak) ||
                     (good && cell->peak_allocated > c->cell->peak_allocated) ||
                     (!c->has_peak && c->cell->outcome == TMK_CELL_PENDING);
    if (is_better)
        *c = (struct tmk_survey_config){cell, number, good, c->n_well, c->n_ill};
}

static void make_configs(struct tmk_survey *g)
{
    const struct tmk_results *r = g->r;
    uint64_t n = 1;
    for (uint32_t p = 0; p < r->n_params; p++)
        n *= r->params[p].n_values;
    g->n_configs = (uint32_t)n; /* cells are bounded when the journal is read */
    g->configs = tmk_xcalloc((size_t)n + 1, sizeof *g->configs);
    for (uint32_t i = 0; i < r->n_cells; i++)
        take_cell(g, i);
}

const struct tmk_survey_config *tmk_survey_at(const struct tmk_survey *g, const uint32_t *choice)
{
    return &g->configs[place_of(g->r, choice)];
}

/* ---- what is said of all ---- */

static void measure(struct tmk_survey *g)
{
    bool is_one = true;
    for (uint32_t i = 0; i < g->n_configs; i++) {
        const struct tmk_cell *cell = g->configs[i].cell;
        if (cell && cell->capacity && cell->capacity != TMK_UNKNOWN_BYTES) {
            is_one &= g->capacity == 0 || g->capacity == cell->capacity;
            g->capacity = cell->capacity;
        }
        if (!cell || !g->configs[i].has_peak)
            continue;
        g->n_measured++;
        if (cell->peak_allocated >= g->most) {
            g->most = cell->peak_allocated;
            g->largest = i;
        }
    }
    if (!is_one)
        g->capacity = 0;
}

/* How far apart the means over each value of a parameter are. */
static double effect_of(const struct tmk_survey *g, uint32_t p)
{
    uint32_t n = g->r->params[p].n_values;
    double least = 0, most = 0;
    bool found = false;
    for (uint32_t v = 0; v < n; v++) {
        double sum = 0, count = 0;
        for (uint32_t i = 0; i < g->n_configs; i++) {
            const struct tmk_survey_config *c = &g->configs[i];
            if (!c->has_peak || c->cell->choice[p] != v)
                continue;
            sum += (double)c->cell->peak_allocated;
            count++;
        }
        double mean = count > 0 ? sum / count : 0;
        if (count == 0)
            continue;
        least = !found || mean < least ? mean : least;
        most = !found || mean > most ? mean : most;
        found = true;
    }
    return most - least;
}

static void order_params(struct tmk_survey *g)
{
    const struct tmk_results *r = g->r;
    double *effects = tmk_xcalloc((size_t)r->n_params + 1, sizeof *effects);
    g->order = tmk_xcalloc((size_t)r->n_params + 1, sizeof *g->order);
    for (uint32_t p = 0; p < r->n_params; p++) {
        if (r->params[p].n_values < 2)
            continue;
        effects[p] = effect_of(g, p);
        uint32_t at = g->n_order++;
        for (; at > 0 && effects[g->order[at - 1]] < effects[p]; at--)
            g->order[at] = g->order[at - 1];
        g->order[at] = p;
    }
    free(effects);
}

int tmk_survey_init(struct tmk_survey *g, const struct tmk_results *r, const struct tmk_fit *f)
{
    *g = (struct tmk_survey){.r = r, .f = f};
    make_configs(g);
    measure(g);
    order_params(g);
    if (g->n_measured)
        return 0;
    tmk_say("%s: no configuration has ended well: there is nothing to draw", r->folder);
    return TMK_EXIT_FINDING;
}

void tmk_survey_fini(struct tmk_survey *g)
{
    free(g->configs);
    free(g->order);
    *g = (struct tmk_survey){0};
}

struct tmk_estimate tmk_survey_estimate(const struct tmk_survey *g,
                                        const struct tmk_survey_config *c)
{
    return g->f && c->cell ? tmk_fit_cell(g->f, c->number) : (struct tmk_estimate){0};
}

/* ---- texts ---- */

/* Of the parameters with several values, or of all where none has: names, and the values that `c`
 * has of them; c NULL: no values. */
static char *list(const struct tmk_survey *g, const struct tmk_survey_config *c, bool has_names,
                  const char *between)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = tmk_xmemstream(&text, &n);
    fputs(g->r->n_params == 0 ? "the command" : "", out);
    bool is_first = true;
    for (uint32_t p = 0; p < g->r->n_params; p++) {
        const struct tmk_sweep_param *param = &g->r->params[p];
        if (param->n_values < 2 && g->n_order)
            continue;
        fprintf(out, "%s%s%s%s", is_first ? "" : between, has_names ? param->name : "",
                has_names && c ? "=" : "", c ? param->values[c->cell->choice[p]] : "");
        is_first = false;
    }
    fclose(out);
    return text;
}

char *tmk_survey_name(const struct tmk_survey *g, const struct tmk_survey_config *c)
{
    return list(g, c, true, " ");
}

char *tmk_survey_values(const struct tmk_survey *g, const struct tmk_survey_config *c)
{
    return list(g, c, false, ", ");
}

char *tmk_survey_names(const struct tmk_survey *g)
{
    return list(g, NULL, true, ", ");
}

static bool is_mixed(const struct tmk_survey_config *c)
{
    return c->has_peak && c->n_ill > 0;
}

char *tmk_survey_repeats(const struct tmk_survey *g, const struct tmk_survey_config *c)
{
    return is_mixed(c) ? tmk_xformat("%u of %u", c->n_well, g->r->n_repeats) : NULL;
}

char *tmk_survey_mixed_text(const struct tmk_survey *g)
{
    bool found = false;
    for (uint32_t i = 0; i < g->n_configs; i++)
        found |= is_mixed(&g->configs[i]);
    return found ? tmk_xformat("n of %u: so many repeats ended well", g->r->n_repeats) : NULL;
}

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
