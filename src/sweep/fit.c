/* SPDX-License-Identifier: MIT */
/* sweep/fit.c - see fit.h: making a fit, and its answers. */
#include "sweep/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit/amount.h"
#include "kit/arena.h"
#include "sweep/fit_internal.h"
#include "sweep/terms.h"

/* ---- making ---- */

static int gather_left_out(struct tmk_fit *f)
{
    size_t room = 0;
    for (uint32_t i = 0; i < f->n_groups; i++)
        room += f->groups[i].m;
    f->left_out = tmk_arena_take(&f->arena, room * sizeof *f->left_out);
    if (!f->left_out)
        return TMK_ENOMEM;
    for (uint32_t i = 0; i < f->n_groups; i++)
        for (uint32_t k = 0; k < f->groups[i].m; k++)
            if (!isnan(f->groups[i].best->left_out[k]))
                f->left_out[f->n_left_out++] = f->groups[i].best->left_out[k];
    qsort(f->left_out, f->n_left_out, sizeof *f->left_out, tmk_fit_rising);
    return 0;
}

static int make_whole_fit(struct tmk_fit *f, struct tmk_error *err)
{
    uint32_t most = 0;
    if (tmk_fit_make_groups(f, &most) != 0 || tmk_fit_tell_terms(f) != 0 || gather_left_out(f) != 0)
        return tmk_fail(err, TMK_ENOMEM, "%s", tmk_result_text(TMK_ENOMEM));
    if (f->n_groups > 0)
        return 0;
    return tmk_fail(err, TMK_EINVAL,
                    most == 1 ? "too few cells are done to say how memory grows: %u configuration "
                                "that differs in numbers only; %u are needed"
                              : "too few cells are done to say how memory grows: %u configurations "
                                "that differ in numbers only; %u are needed",
                    most, (unsigned)TMK_FIT_LEAST);
}

int tmk_fit_make(const struct tmk_results *r, enum tmk_fit_of of, struct tmk_fit **ret,
                 struct tmk_error *err)
{
    struct tmk_fit *f = calloc(1, sizeof *f);
    if (!f)
        return tmk_fail(err, TMK_ENOMEM, "%s", tmk_result_text(TMK_ENOMEM));
    f->r = r;
    f->of = of;
    int rc = make_whole_fit(f, err);
    if (rc != 0) {
        tmk_fit_close(f);
        return rc;
    }
    *ret = f;
    return 0;
}

struct tmk_fit *tmk_fit_close(struct tmk_fit *f)
{
    if (f)
        tmk_arena_fini(&f->arena);
    free(f);
    return NULL;
}

/* ---- answers ---- */

static const struct tmk_fit_group *fit_group_of(const struct tmk_fit *f, const uint32_t *choice)
{
    for (uint32_t i = 0; i < f->n_groups; i++)
        if (tmk_fit_is_alike(f, f->r->cells[f->groups[i].first_cell].choice, choice, false))
            return &f->groups[i];
    return NULL;
}

struct tmk_estimate tmk_fit_at(const struct tmk_fit *f, const double *numbers,
                               const uint32_t *choice)
{
    const struct tmk_fit_group *g = fit_group_of(f, choice);
    double own[TMK_TERMS_PARAMS];
    for (uint32_t k = 0; k < f->n_numbers; k++)
        own[k] = numbers[f->number_of[k]];
    return g ? tmk_fit_group_at(g, own) : (struct tmk_estimate){.known = false};
}

struct tmk_estimate tmk_fit_cell(const struct tmk_fit *f, uint32_t c)
{
    const uint32_t *choice = f->r->cells[c].choice;
    const struct tmk_fit_group *g = fit_group_of(f, choice);
    double own[TMK_TERMS_PARAMS];
    tmk_fit_numbers(f, choice, own);
    return g ? tmk_fit_group_at(g, own) : (struct tmk_estimate){.known = false};
}

bool tmk_fit_is_edge_off(const struct tmk_fit *f, uint32_t *ret_cell)
{
    for (uint32_t i = 0; i < f->n_groups; i++)
        if (f->groups[i].off_row < f->groups[i].m) {
            *ret_cell = f->groups[i].row_cell[f->groups[i].off_row];
            return true;
        }
    return false;
}

const char *tmk_fit_way(const struct tmk_fit *f, uint32_t c)
{
    const struct tmk_fit_group *g = fit_group_of(f, f->r->cells[c].choice);
    return g ? g->best->name : NULL;
}

bool tmk_fit_contradicts(const struct tmk_fit *f, uint32_t c)
{
    const struct tmk_cell *cell = &f->r->cells[c];
    if (cell->outcome != TMK_CELL_OOM || cell->capacity == TMK_BYTES_UNKNOWN || cell->capacity == 0)
        return false;
    struct tmk_estimate e = tmk_fit_cell(f, c);
    return e.known && e.high < (double)cell->capacity;
}

double tmk_fit_left_out_median(const struct tmk_fit *f)
{
    uint32_t n = f->n_left_out;
    return n == 0 ? NAN : (f->left_out[(n - 1) / 2] + f->left_out[n / 2]) / 2;
}

double tmk_fit_left_out_worst(const struct tmk_fit *f)
{
    return f->n_left_out == 0 ? NAN : f->left_out[f->n_left_out - 1];
}

double tmk_fit_left_out(const struct tmk_fit *f, uint32_t c)
{
    const uint32_t *choice = f->r->cells[c].choice;
    const struct tmk_fit_group *g = fit_group_of(f, choice);
    for (uint32_t i = 0; g && i < g->m; i++)
        if (tmk_fit_is_alike(f, f->r->cells[g->row_cell[i]].choice, choice, true))
            return g->best->left_out[i];
    return NAN;
}

uint32_t tmk_fit_n_configurations(const struct tmk_fit *f)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n_groups; i++)
        n += f->groups[i].m;
    return n;
}

uint32_t tmk_fit_n_terms(const struct tmk_fit *f)
{
    return f->n_terms;
}

const struct tmk_fit_term *tmk_fit_term(const struct tmk_fit *f, uint32_t i)
{
    return &f->terms[i];
}

/* The index of parameter p among the numbers; n_numbers: it is none. */
static uint32_t fit_number_at(const struct tmk_fit *f, uint32_t p)
{
    uint32_t k = 0;
    while (k < f->n_numbers && f->number_of[k] != p)
        k++;
    return k;
}

/* Find the range of number k in the rows of a group. */
static void find_effect_range(const struct tmk_fit_group *g, uint32_t k, struct tmk_fit_effect *e)
{
    e->from = g->from[k];
    e->to = g->to[k];
    for (uint32_t i = 0; i < g->m; i++) {
        double v = g->x[(size_t)i * g->n_numbers + k];
        bool is_new = true;
        for (uint32_t j = 0; is_new && j < i; j++)
            is_new = g->x[(size_t)j * g->n_numbers + k] != v;
        e->n_values += is_new;
    }
}

struct tmk_fit_effect tmk_fit_effect(const struct tmk_fit *f, uint32_t p, uint32_t c)
{
    struct tmk_fit_effect e = {.known = false};
    const struct tmk_fit_group *g = fit_group_of(f, f->r->cells[c].choice);
    uint32_t k = fit_number_at(f, p);
    double from[TMK_TERMS_PARAMS], to[TMK_TERMS_PARAMS];
    if (!g || k == f->n_numbers)
        return e;
    find_effect_range(g, k, &e);
    tmk_fit_numbers(f, f->r->cells[c].choice, from);
    memcpy(to, from, sizeof to);
    from[k] = e.from;
    to[k] = e.to;
    struct tmk_estimate low = tmk_fit_group_at(g, from), high = tmk_fit_group_at(g, to);
    e.known = low.known && high.known;
    e.bytes_from = low.bytes;
    e.bytes_to = high.bytes;
    tmk_fit_group_change(g, k, from, to, &e);
    return e;
}

/* ---- the largest that fits ---- */

struct fit_line_span { /* a line over a parameter's whole values, all others fixed */
    const struct tmk_fit_group *g;
    double *numbers;
    uint32_t k;
    bool by_high;
};

static double bound_at(const struct fit_line_span *l, uint64_t value)
{
    l->numbers[l->k] = (double)value;
    struct tmk_estimate e = tmk_fit_group_at(l->g, l->numbers);
    return !e.known ? INFINITY : l->by_high ? e.high : e.low;
}

/* Find the minimum. With a part that falls (one over the parameter) and one that grows, it is in
 * the middle. All terms are convex, so there is one valley. */
static uint64_t find_valley(const struct fit_line_span *l, uint64_t from, uint64_t to)
{
    while (to - from > 2) {
        uint64_t third = (to - from) / 3, left = from + third, right = to - third;
        if (bound_at(l, left) <= bound_at(l, right))
            to = right;
        else
            from = left;
    }
    uint64_t best = from;
    for (uint64_t v = from + 1; v <= to; v++)
        best = bound_at(l, v) < bound_at(l, best) ? v : best;
    return best;
}

/* Search the largest value: double it until it no longer fits, then bisect. Values that fit may
 * begin above 1. */
static uint64_t search_largest(const struct tmk_fit *f, uint32_t p, uint32_t c, uint64_t capacity,
                               bool by_high)
{
    const uint64_t endless = UINT64_C(1) << 40;
    double numbers[TMK_TERMS_PARAMS], room = (double)capacity;
    const struct fit_line_span l = {fit_group_of(f, f->r->cells[c].choice), numbers,
                                    fit_number_at(f, p), by_high};
    if (!l.g || l.k == f->n_numbers || !l.g->terms.varies[l.k])
        return 0;
    tmk_fit_numbers(f, f->r->cells[c].choice, numbers);
    if (bound_at(&l, endless) <= room)
        return UINT64_MAX;
    uint64_t good = 0, bad = endless;
    for (uint64_t v = 1; v < endless && bad == endless; v *= 2)
        if (bound_at(&l, v) <= room)
            good = v;
        else if (good > 0)
            bad = v;
    if (good == 0)
        good = find_valley(&l, 1, endless);
    if (bound_at(&l, good) > room)
        return 0;
    while (bad - good > 1) {
        uint64_t middle = good + (bad - good) / 2;
        *(bound_at(&l, middle) <= room ? &good : &bad) = middle;
    }
    return good;
}

uint64_t tmk_fit_largest(const struct tmk_fit *f, uint32_t p, uint32_t c, uint64_t capacity)
{
    return search_largest(f, p, c, capacity, true);
}

uint64_t tmk_fit_largest_possible(const struct tmk_fit *f, uint32_t p, uint32_t c,
                                  uint64_t capacity)
{
    return search_largest(f, p, c, capacity, false);
}
