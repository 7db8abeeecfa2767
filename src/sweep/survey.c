/* SPDX-License-Identifier: MIT */
/* sweep/survey.c - see survey.h. */
#include "sweep/survey.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit/amount.h"
#include "kit/arena.h"

/* ---- configurations ---- */

static void take_cell(struct tmk_survey *g, uint32_t number)
{
    const struct tmk_cell *cell = &g->r->cells[number];
    struct tmk_survey_config *c = &g->configs[number / g->r->n_repeats];
    bool is_measured = tmk_cell_is_measured(cell);
    bool decides = !c->cell || (is_measured && !c->has_peak) ||
                   (is_measured && cell->peak_allocated > c->cell->peak_allocated) ||
                   (!c->has_peak && c->cell->outcome == TMK_CELL_PENDING);
    g->n_cells[cell->outcome]++;
    g->n_peakless += cell->outcome == TMK_CELL_DONE && !is_measured;
    c->n_well += cell->outcome == TMK_CELL_DONE;
    c->n_ill += cell->outcome != TMK_CELL_DONE && cell->outcome != TMK_CELL_PENDING &&
                cell->outcome != TMK_CELL_EXCLUDED;
    if (!decides)
        return;
    c->cell = cell;
    c->number = number;
    c->has_peak = is_measured;
}

static int make_configs(struct tmk_survey *g)
{
    g->n_configs = g->r->n_cells / g->r->n_repeats;
    g->configs = tmk_arena_take(&g->arena, (size_t)g->n_configs * sizeof *g->configs);
    if (!g->configs)
        return TMK_ENOMEM;
    for (uint32_t i = 0; i < g->r->n_cells; i++)
        take_cell(g, i);
    return 0;
}

const struct tmk_survey_config *tmk_survey_at(const struct tmk_survey *g, const uint32_t *choice)
{
    uint32_t number = 0;
    for (uint32_t p = 0; p < g->r->n_params; p++)
        number = number * g->r->params[p].n_values + choice[p];
    return &g->configs[number];
}

struct tmk_estimate tmk_survey_estimate(const struct tmk_survey *g,
                                        const struct tmk_survey_config *c)
{
    return g->fit ? tmk_fit_cell(g->fit, c->number) : (struct tmk_estimate){.known = false};
}

bool tmk_survey_is_estimated(const struct tmk_survey *g, const struct tmk_survey_config *c,
                             struct tmk_estimate *ret)
{
    bool is_open = !c->has_peak && c->cell->outcome != TMK_CELL_EXCLUDED;
    *ret = is_open ? tmk_survey_estimate(g, c) : (struct tmk_estimate){.known = false};
    return ret->known;
}

/* ---- all of them ---- */

static void add_survey_capacity(struct tmk_survey *g, uint64_t bytes, bool *is_one)
{
    if (bytes == 0 || bytes == TMK_BYTES_UNKNOWN)
        return;
    *is_one = *is_one && (g->capacity == 0 || g->capacity == bytes);
    g->capacity = bytes;
}

static void measure_survey(struct tmk_survey *g)
{
    bool is_one = true;
    for (uint32_t i = 0; i < g->n_configs; i++) {
        const struct tmk_survey_config *c = &g->configs[i];
        add_survey_capacity(g, c->cell->capacity, &is_one);
        g->n_measured += c->has_peak;
        if (c->has_peak && (!g->largest || c->cell->peak_allocated > g->most)) {
            g->largest = c;
            g->most = c->cell->peak_allocated;
        }
    }
    if (!is_one)
        g->capacity = 0;
}

/* ---- effects of parameters ---- */

/* List each configuration's peak, or its estimate; 0: not known. With gaps (constraints, OOMs)
 * large configurations of one value would be compared with small ones of another. */
static double *take_peaks(struct tmk_survey *g)
{
    double *peaks = tmk_arena_take(&g->arena, g->n_configs * sizeof *peaks);
    for (uint32_t i = 0; peaks && i < g->n_configs; i++) {
        const struct tmk_survey_config *c = &g->configs[i];
        peaks[i] = c->has_peak ? (double)c->cell->peak_allocated : tmk_survey_estimate(g, c).bytes;
    }
    return peaks;
}

struct repeat_mean {
    double sum;
    uint32_t n;
};

/* The effect of a parameter: the distance between the means over each of its values. `means` has a
 * row for each value. */
static double effect_of(const struct tmk_survey *g, uint32_t p, const double *peaks,
                        struct repeat_mean *means)
{
    double least = INFINITY, most = 0;
    for (uint32_t i = 0; i < g->n_configs; i++) {
        struct repeat_mean *m = &means[g->configs[i].cell->choice[p]];
        m->sum += peaks[i];
        m->n += peaks[i] > 0;
    }
    for (uint32_t v = 0; v < g->r->params[p].n_values; v++) {
        if (means[v].n == 0)
            continue;
        least = fmin(least, means[v].sum / means[v].n);
        most = fmax(most, means[v].sum / means[v].n);
    }
    return most > least ? most - least : 0;
}

static int order_params(struct tmk_survey *g)
{
    const struct tmk_results *r = g->r;
    double *effects = tmk_arena_take(&g->arena, r->n_params * sizeof *effects);
    double *peaks = take_peaks(g);
    g->order = tmk_arena_take(&g->arena, r->n_params * sizeof *g->order);
    if (!effects || !peaks || !g->order)
        return TMK_ENOMEM;
    for (uint32_t p = 0; p < r->n_params; p++) {
        if (r->params[p].n_values < 2)
            continue;
        struct repeat_mean *means =
            tmk_arena_take(&g->arena, r->params[p].n_values * sizeof *means);
        if (!means)
            return TMK_ENOMEM;
        effects[p] = effect_of(g, p, peaks, means);
        uint32_t at = g->n_order++;
        for (; at > 0 && effects[g->order[at - 1]] < effects[p]; at--)
            g->order[at] = g->order[at - 1];
        g->order[at] = p;
    }
    return 0;
}

/* ---- names ---- */

/* List the names and the chosen values; `choice` NULL: no values. NULL: no memory. */
static const char *list_choice_names(struct tmk_survey *g, const uint32_t *choice, bool has_names,
                                     const char *between)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    if (!out)
        return NULL;
    fputs(g->r->n_params == 0 ? "the command" : "", out);
    bool is_first = true;
    for (uint32_t p = 0; p < g->r->n_params; p++) {
        const struct tmk_sweep_param *param = &g->r->params[p];
        if (param->n_values < 2 && g->n_order)
            continue;
        fprintf(out, "%s%s%s%s", is_first ? "" : between, has_names ? param->name : "",
                has_names && choice ? "=" : "", choice ? param->values[choice[p]] : "");
        is_first = false;
    }
    const char *copy = fclose(out) == 0 ? tmk_arena_text(&g->arena, text, n) : NULL;
    free(text);
    return copy;
}

static int name_config(struct tmk_survey *g, struct tmk_survey_config *c)
{
    uint32_t n = g->r->n_repeats;
    c->name = list_choice_names(g, c->cell->choice, true, " ");
    c->values = list_choice_names(g, c->cell->choice, false, ", ");
    if (!c->name || !c->values)
        return TMK_ENOMEM;
    if (!c->has_peak || c->n_ill == 0)
        return 0;
    c->repeats = tmk_arena_format(&g->arena, "%u of %u", c->n_well, n);
    g->repeats_note = tmk_arena_format(&g->arena, "n of %u: so many repeats ended well", n);
    return c->repeats && g->repeats_note ? 0 : TMK_ENOMEM;
}

static int name_configs(struct tmk_survey *g)
{
    g->names = list_choice_names(g, NULL, true, ", ");
    int rc = g->names ? 0 : TMK_ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < g->n_configs; i++)
        rc = name_config(g, &g->configs[i]);
    return rc;
}

/* ---- making ---- */

static int make_survey_fit(struct tmk_survey *g)
{
    struct tmk_error err = {0};
    int rc = tmk_fit_make(g->r, TMK_FIT_ALLOCATED, &g->fit, &err);
    if (rc != TMK_EINVAL)
        return rc;
    g->why_none = tmk_arena_text(&g->arena, err.text, strlen(err.text));
    return g->why_none ? 0 : TMK_ENOMEM;
}

int tmk_survey_init(struct tmk_survey *g, const struct tmk_results *r)
{
    *g = (struct tmk_survey){.r = r};
    int rc = make_survey_fit(g);
    if (rc == 0)
        rc = make_configs(g);
    if (rc != 0)
        return rc;
    measure_survey(g);
    rc = order_params(g);
    return rc == 0 ? name_configs(g) : rc;
}

void tmk_survey_fini(struct tmk_survey *g)
{
    tmk_fit_close(g->fit);
    tmk_arena_fini(&g->arena);
    *g = (struct tmk_survey){0};
}
