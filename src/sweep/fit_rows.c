/* SPDX-License-Identifier: MIT */
/* sweep/fit_rows.c - the cells that a fit is made from, in groups and rows; see fit_internal.h. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "kit/amount.h"
#include "kit/arena.h"
#include "kit/textmap.h"
#include "sweep/fit.h"
#include "sweep/fit_internal.h"
#include "sweep/results.h"
#include "sweep/terms.h"

enum { MOST_PARTS = 48 }; /* categories or stages; tidemark has fewer */

/* ---- which cells ---- */

static uint64_t figure_of(const struct tmk_fit *f, const struct tmk_cell *c)
{
    return f->of == TMK_FIT_RESERVED ? c->peak_reserved : c->peak_allocated;
}

/* Whether a configuration is in the sample of very many. A hash of its number decides, because
 * every n-th one would have the same value of a parameter again and again. */
static bool is_drawn(const struct tmk_fit *f, const struct tmk_cell *c)
{
    uint64_t number = (uint64_t)(c - f->r->cells) / f->r->n_repeats;
    uint64_t n = f->r->n_cells / f->r->n_repeats;
    return n <= TMK_FIT_MOST || (uint32_t)(number * 2654435769u) % n < TMK_FIT_MOST;
}

static bool has_figure(const struct tmk_fit *f, const struct tmk_cell *c)
{
    uint64_t v = figure_of(f, c);
    return c->outcome == TMK_CELL_DONE && v != TMK_BYTES_UNKNOWN && v > 0 && is_drawn(f, c);
}

/* Find the parameters that are numbers. Those beyond the number that terms can have count as
 * words. */
static int find_numbers(struct tmk_fit *f)
{
    const struct tmk_results *r = f->r;
    f->is_number = tmk_arena_take(&f->arena, r->n_params * sizeof *f->is_number);
    if (!f->is_number)
        return TMK_ENOMEM;
    for (uint32_t p = 0; p < r->n_params && f->n_numbers < TMK_TERMS_PARAMS; p++) {
        bool is_finite = r->params[p].numbers != NULL;
        for (uint32_t v = 0; is_finite && v < r->params[p].n_values; v++)
            is_finite = isfinite(r->params[p].numbers[v]);
        if (!is_finite)
            continue;
        f->is_number[p] = true;
        f->number_of[f->n_numbers++] = p;
    }
    return 0;
}

bool tmk_fit_is_alike(const struct tmk_fit *f, const uint32_t *a, const uint32_t *b, bool numbers)
{
    for (uint32_t p = 0; p < f->r->n_params; p++)
        if (f->is_number[p] == numbers && a[p] != b[p])
            return false;
    return true;
}

void tmk_fit_numbers(const struct tmk_fit *f, const uint32_t *choice, double *ret)
{
    for (uint32_t k = 0; k < f->n_numbers; k++)
        ret[k] = f->r->params[f->number_of[k]].numbers[choice[f->number_of[k]]];
}

/* ---- rows ---- */

/* The row of a cell; the number of rows if it needs a new one. */
static uint32_t fit_row_of(const struct tmk_fit *f, const struct tmk_fit_group *g, uint32_t cell)
{
    for (uint32_t i = g->m; i-- > 0;)
        if (tmk_fit_is_alike(f, f->r->cells[g->row_cell[i]].choice, f->r->cells[cell].choice, true))
            return i;
    return g->m;
}

static bool is_cell_in_group(const struct tmk_fit *f, const struct tmk_fit_group *g, uint32_t cell)
{
    const struct tmk_cell *cells = f->r->cells;
    return has_figure(f, &cells[cell]) &&
           tmk_fit_is_alike(f, cells[g->first_cell].choice, cells[cell].choice, false);
}

static int fill_rows(struct tmk_fit *f, struct tmk_fit_group *g)
{
    uint32_t room = 0;
    for (uint32_t c = g->first_cell; c < f->r->n_cells; c++)
        room += is_cell_in_group(f, g, c);
    g->n_numbers = f->n_numbers;
    g->x = tmk_arena_take(&f->arena, (size_t)room * (f->n_numbers + 1) * sizeof *g->x);
    g->row_cell = tmk_arena_take(&f->arena, room * sizeof *g->row_cell);
    g->n_repeats = tmk_arena_take(&f->arena, room * sizeof *g->n_repeats);
    g->total = tmk_arena_take(&f->arena, room * sizeof *g->total);
    if (!g->x || !g->row_cell || !g->n_repeats || !g->total)
        return TMK_ENOMEM;
    for (uint32_t c = g->first_cell; c < f->r->n_cells; c++) {
        if (!is_cell_in_group(f, g, c))
            continue;
        uint32_t row = fit_row_of(f, g, c);
        if (row == g->m) {
            g->row_cell[g->m++] = c;
            tmk_fit_numbers(f, f->r->cells[c].choice, g->x + (size_t)row * f->n_numbers);
        }
        g->n_repeats[row]++;
        g->total[row] += (double)figure_of(f, &f->r->cells[c]);
    }
    for (uint32_t i = 0; i < g->m; i++)
        g->total[i] /= g->n_repeats[i];
    return 0;
}

/* ---- ways ---- */

static int add_way(struct tmk_fit *f, struct tmk_fit_group *g, const char *name, bool is_largest,
                   const struct tmk_textmap *names, struct tmk_fit_way **ret)
{
    struct tmk_fit_way *w = &g->ways[g->n_ways];
    *w =
        (struct tmk_fit_way){.name = name, .is_largest = is_largest, .n_parts = (uint32_t)names->n};
    w->parts = tmk_arena_take(&f->arena, names->n * sizeof *w->parts);
    if (!w->parts)
        return TMK_ENOMEM;
    for (uint32_t i = 0; i < names->n; i++) {
        w->parts[i].name = names->texts[i];
        w->parts[i].y = tmk_arena_take(&f->arena, g->m * sizeof *w->parts[i].y);
        if (!w->parts[i].y)
            return TMK_ENOMEM;
    }
    g->n_ways++;
    *ret = w;
    return 0;
}

static int add_whole_way(struct tmk_fit *f, struct tmk_fit_group *g, const char *name)
{
    const char *texts[] = {name};
    struct tmk_fit_way *w;
    if (add_way(f, g, name, false, &(struct tmk_textmap){.texts = texts, .n = 1}, &w) != 0)
        return TMK_ENOMEM;
    memcpy(w->parts[0].y, g->total, g->m * sizeof *g->total);
    return 0;
}

/* Collect the categories' names. The rest of the peak becomes a category of its own, so that the
 * sum is the peak. */
static int name_categories(const struct tmk_fit *f, const struct tmk_fit_group *g,
                           struct tmk_textmap *names)
{
    uint32_t number;
    for (uint32_t c = g->first_cell; c < f->r->n_cells; c++) {
        const struct tmk_shares *s = &f->r->cells[c].categories;
        for (uint32_t i = 0; is_cell_in_group(f, g, c) && i < s->n && names->n < MOST_PARTS; i++)
            if (tmk_textmap_put(names, s->rows[i].key, &number) != 0)
                return TMK_ENOMEM;
    }
    return tmk_textmap_put(names, "unknown", &number);
}

static void fill_categories(const struct tmk_fit *f, const struct tmk_fit_group *g,
                            const struct tmk_textmap *names, struct tmk_fit_way *w)
{
    uint32_t number, unknown = 0;
    (void)tmk_textmap_find(names, "unknown", &unknown);
    for (uint32_t c = g->first_cell; c < f->r->n_cells; c++) {
        const struct tmk_cell *cell = &f->r->cells[c];
        if (!is_cell_in_group(f, g, c))
            continue;
        uint32_t row = fit_row_of(f, g, c);
        double rest = (double)cell->peak_allocated;
        for (uint32_t i = 0; i < cell->categories.n; i++) {
            double bytes = (double)cell->categories.rows[i].bytes;
            if (!tmk_textmap_find(names, cell->categories.rows[i].key, &number))
                continue;
            w->parts[number].y[row] += bytes / g->n_repeats[row];
            rest -= bytes;
        }
        w->parts[unknown].y[row] += fmax(rest, 0) / g->n_repeats[row];
    }
}

static int add_category_way(struct tmk_fit *f, struct tmk_fit_group *g)
{
    struct tmk_textmap names = {0};
    struct tmk_fit_way *w = NULL;
    int rc = name_categories(f, g, &names);
    if (rc == 0)
        rc = add_way(f, g, "category", false, &names, &w);
    if (rc == 0)
        fill_categories(f, g, &names, w);
    tmk_textmap_fini(&names);
    return rc;
}

static uint64_t stage_peak(const struct tmk_cell *c, const char *name)
{
    for (uint32_t i = 0; i < c->n_stages; i++)
        if (strcmp(c->stages[i].name, name) == 0)
            return c->stages[i].peak;
    return TMK_BYTES_UNKNOWN;
}

/* Collect the stages that all cells have; none, unless the largest of them is each cell's peak. */
static int name_stages(const struct tmk_fit *f, const struct tmk_fit_group *g,
                       struct tmk_textmap *names)
{
    const struct tmk_cell *first = &f->r->cells[g->row_cell[0]];
    uint32_t number;
    for (uint32_t i = 0; i < first->n_stages && names->n < MOST_PARTS; i++) {
        bool is_everywhere = true;
        for (uint32_t c = g->first_cell; c < f->r->n_cells; c++)
            is_everywhere = is_everywhere && (!is_cell_in_group(f, g, c) ||
                                              stage_peak(&f->r->cells[c], first->stages[i].name) !=
                                                  TMK_BYTES_UNKNOWN);
        if (is_everywhere && tmk_textmap_put(names, first->stages[i].name, &number) != 0)
            return TMK_ENOMEM;
    }
    return 0;
}

/* Whether the largest stage is the peak, within a thousandth. */
static bool fill_stages(const struct tmk_fit *f, const struct tmk_fit_group *g,
                        struct tmk_fit_way *w)
{
    bool is_whole = true;
    for (uint32_t c = g->first_cell; c < f->r->n_cells; c++) {
        if (!is_cell_in_group(f, g, c))
            continue;
        const struct tmk_cell *cell = &f->r->cells[c];
        uint32_t row = fit_row_of(f, g, c);
        double most = 0;
        for (uint32_t i = 0; i < w->n_parts; i++) {
            double peak = (double)stage_peak(cell, w->parts[i].name);
            most = fmax(most, peak);
            w->parts[i].y[row] += peak / g->n_repeats[row];
        }
        double whole = (double)cell->peak_allocated;
        is_whole = is_whole && fabs(most - whole) <= 0.001 * whole;
    }
    return is_whole;
}

static int add_stage_way(struct tmk_fit *f, struct tmk_fit_group *g)
{
    struct tmk_textmap names = {0};
    struct tmk_fit_way *w = NULL;
    int rc = name_stages(f, g, &names);
    if (rc == 0 && names.n > 1)
        rc = add_way(f, g, "stage", true, &names, &w);
    if (rc == 0 && w && !fill_stages(f, g, w))
        g->n_ways--;
    tmk_textmap_fini(&names);
    return rc;
}

static int add_ways(struct tmk_fit *f, struct tmk_fit_group *g)
{
    if (f->of == TMK_FIT_RESERVED)
        return add_whole_way(f, g, "reserved");
    int rc = add_category_way(f, g);
    rc = rc == 0 ? add_whole_way(f, g, "peak") : rc;
    return rc == 0 ? add_stage_way(f, g) : rc;
}

/* ---- groups ---- */

/* Whether the cell is the first of its group. */
static bool begins_group(const struct tmk_fit *f, uint32_t c)
{
    for (uint32_t i = 0; i < c; i++)
        if (has_figure(f, &f->r->cells[i]) &&
            tmk_fit_is_alike(f, f->r->cells[i].choice, f->r->cells[c].choice, false))
            return false;
    return has_figure(f, &f->r->cells[c]);
}

int tmk_fit_make_groups(struct tmk_fit *f, uint32_t *ret_most)
{
    uint32_t n = 0;
    if (find_numbers(f) != 0)
        return TMK_ENOMEM;
    for (uint32_t c = 0; c < f->r->n_cells; c++)
        n += begins_group(f, c);
    f->groups = tmk_arena_take(&f->arena, n * sizeof *f->groups);
    if (!f->groups)
        return TMK_ENOMEM;
    for (uint32_t c = 0; c < f->r->n_cells; c++) {
        if (!begins_group(f, c))
            continue;
        struct tmk_fit_group *g = &f->groups[f->n_groups];
        *g = (struct tmk_fit_group){.first_cell = c};
        if (fill_rows(f, g) != 0)
            return TMK_ENOMEM;
        *ret_most = g->m > *ret_most ? g->m : *ret_most;
        if (g->m < TMK_FIT_LEAST)
            continue;
        f->n_groups++;
        if (add_ways(f, g) != 0 || tmk_fit_group_solve(g, &f->arena) != 0)
            return TMK_ENOMEM;
    }
    return 0;
}
