/* SPDX-License-Identifier: MIT */
/* sweep/fit_terms.c - the terms of a fit as texts; see fit_internal.h. */
#include <math.h>

#include "base/error.h"
#include "kit/arena.h"
#include "sweep/curve.h"
#include "sweep/fit.h"
#include "sweep/fit_internal.h"
#include "sweep/nnls.h"
#include "sweep/results.h"
#include "sweep/terms.h"

static const char *where_of(struct tmk_fit *f, const struct tmk_fit_group *g)
{
    const struct tmk_results *r = f->r;
    const char *text = NULL;
    for (uint32_t p = 0; p < r->n_params; p++) {
        if (f->is_number[p])
            continue;
        const char *value = r->params[p].values[r->cells[g->first_cell].choice[p]];
        text = tmk_arena_format(&f->arena, "%s%s%s=%s", text ? text : "", text ? " " : "",
                                r->params[p].name, value);
        if (!text)
            return NULL;
    }
    return text;
}

static double error_of(const struct tmk_fit_group *g, const struct tmk_curve *c, uint32_t k)
{
    double squares = 0;
    for (uint32_t i = 0; i < g->m; i++)
        squares += c->rest[i] * c->rest[i];
    for (uint32_t i = 0; i < c->fit.n_used; i++)
        if (c->fit.used[i] == k)
            return sqrt(squares / g->m * tmk_nnls_spread(&c->fit, i));
    return NAN;
}

static int tell_part(struct tmk_fit *f, const struct tmk_fit_group *g, const struct tmk_fit_way *w,
                     const struct tmk_fit_part *part)
{
    const char *names[TMK_TERMS_PARAMS];
    const char *where = where_of(f, g);
    for (uint32_t k = 0; k < f->n_numbers; k++)
        names[k] = f->r->params[f->number_of[k]].name;
    for (uint32_t k = 0; k < part->curve.n_chosen; k++) {
        struct tmk_fit_term *t = &f->terms[f->n_terms++];
        t->category =
            tmk_arena_format(&f->arena, "%s%s", w->is_largest ? "stage " : "", part->name);
        t->text = tmk_term_text(&g->terms.items[part->curve.chosen[k]], names, &f->arena);
        t->coefficient = part->curve.x[k];
        t->error = error_of(g, &part->curve, k);
        t->where = where;
        if (!t->text || !t->category)
            return TMK_ENOMEM;
    }
    return 0;
}

/* List the terms of each group's first way, and of the way that makes its estimates. */
int tmk_fit_tell_terms(struct tmk_fit *f)
{
    size_t room = 0;
    for (uint32_t i = 0; i < f->n_groups; i++)
        for (uint32_t w = 0; w < f->groups[i].n_ways; w++)
            room += (size_t)f->groups[i].ways[w].n_parts * TMK_NNLS_MOST;
    f->terms = tmk_arena_take(&f->arena, room * sizeof *f->terms);
    if (!f->terms)
        return TMK_ENOMEM;
    for (uint32_t i = 0; i < f->n_groups; i++)
        for (uint32_t w = 0; w < f->groups[i].n_ways; w++) {
            const struct tmk_fit_group *g = &f->groups[i];
            if (w > 0 && g->best != &g->ways[w])
                continue;
            for (uint32_t part = 0; part < g->ways[w].n_parts; part++)
                if (tell_part(f, g, &g->ways[w], &g->ways[w].parts[part]) != 0)
                    return TMK_ENOMEM;
        }
    return 0;
}
