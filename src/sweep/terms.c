/* SPDX-License-Identifier: MIT */
/* sweep/terms.c - see terms.h. */
#include "sweep/terms.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct term_cells {
    const double *x;
    uint32_t n, n_params;
};

/* ---- factors ---- */

/* Count the different values of a parameter, up to three. */
static unsigned n_cell_values(const struct term_cells *c, uint32_t p)
{
    double first = c->x[p], other = NAN;
    for (uint32_t i = 1; i < c->n; i++) {
        double v = c->x[(size_t)i * c->n_params + p];
        if (v == first || v == other)
            continue;
        if (!isnan(other))
            return 3;
        other = v;
    }
    return isnan(other) ? 1 : 2;
}

static bool is_above_zero(const struct term_cells *c, uint32_t p)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (!(c->x[(size_t)i * c->n_params + p] > 0))
            return false;
    return true;
}

enum { MOST_FACTORS = 24 };

struct factor_list {
    struct tmk_factor items[MOST_FACTORS];
    bool may_square[MOST_FACTORS];
    uint32_t n;
};

static void add_factor(struct factor_list *f, uint32_t a, uint32_t b, bool is_inverse,
                       bool may_square)
{
    if (f->n == MOST_FACTORS)
        return;
    f->items[f->n] = (struct tmk_factor){(uint8_t)a, (uint8_t)b, is_inverse};
    f->may_square[f->n++] = may_square;
}

static void find_factors(const struct term_cells *c, const struct tmk_terms_hints *hints,
                         struct tmk_terms *t, struct factor_list *ret)
{
    ret->n = 0;
    for (uint32_t p = 0; p < c->n_params; p++) {
        unsigned n = n_cell_values(c, p);
        t->varies[p] = n > 1;
        if (n > 1)
            add_factor(ret, p, p, false, n > 2);
    }
    for (uint32_t p = 0; p < c->n_params; p++)
        for (uint32_t q = p + 1; q < c->n_params; q++)
            if (t->varies[p] && t->varies[q] && hints->caps[p][q])
                add_factor(ret, p, q, false, false);
    for (uint32_t p = 0; p < c->n_params; p++)
        if (t->varies[p] && hints->falls[p] && is_above_zero(c, p))
            add_factor(ret, p, p, true, false);
}

/* ---- products ---- */

static bool share_a_parameter(const struct tmk_factor *f, const struct tmk_factor *g)
{
    return f->a == g->a || f->a == g->b || f->b == g->a || f->b == g->b;
}

static void add_term(struct tmk_terms *t, const struct factor_list *f, const uint32_t *which,
                     uint8_t n)
{
    struct tmk_term term = {.n = n};
    for (uint8_t i = 0; i < n; i++) {
        term.factors[i] = f->items[which[i]];
        for (uint8_t j = 0; j < i; j++) {
            bool is_square = which[i] == which[j];
            if (is_square ? !f->may_square[which[i]]
                          : share_a_parameter(&term.factors[i], &term.factors[j]))
                return;
        }
    }
    if (t->n < TMK_TERMS_MOST)
        t->items[t->n++] = term;
}

/* Add all products of `n` factors from the `from`-th on, with `at` factors chosen already; no
 * cubes, and at most one square. */
static void add_products(struct tmk_terms *t, const struct factor_list *f, uint32_t *which,
                         uint8_t at, uint8_t n, bool has_square)
{
    if (at == n) {
        add_term(t, f, which, n);
        return;
    }
    for (uint32_t i = at > 0 ? which[at - 1] : 0; i < f->n; i++) {
        bool is_square = at > 0 && which[at - 1] == i;
        which[at] = i;
        if (!is_square || !has_square)
            add_products(t, f, which, (uint8_t)(at + 1), n, has_square || is_square);
    }
}

/* Low degrees come first, so that high ones are left out if there is no room for all. */
void tmk_terms_find(const double *x, uint32_t n, uint32_t n_params,
                    const struct tmk_terms_hints *hints, struct tmk_terms *ret)
{
    const struct term_cells cells = {.x = x, .n = n, .n_params = n_params};
    struct factor_list f;
    uint32_t which[TMK_TERM_FACTORS];
    memset(ret, 0, sizeof *ret);
    find_factors(&cells, hints, ret, &f);
    for (uint8_t degree = 0; degree <= TMK_TERM_FACTORS; degree++)
        add_products(ret, &f, which, 0, degree, false);
}

/* ---- a term ---- */

double tmk_term_value(const struct tmk_term *t, const double *numbers)
{
    double product = 1;
    for (uint8_t i = 0; i < t->n; i++) {
        const struct tmk_factor *f = &t->factors[i];
        double v = fmin(numbers[f->a], numbers[f->b]);
        product *= f->is_inverse ? 1 / v : v;
    }
    return product;
}

double tmk_term_cost(const struct tmk_term *t)
{
    double cost = 1;
    for (uint8_t i = 0; i < t->n; i++)
        cost += (i > 0 ? 0.25 : 0) + (t->factors[i].a != t->factors[i].b ? 1 : 0) +
                (t->factors[i].is_inverse ? 0.3 : 0);
    return cost;
}

bool tmk_term_has(const struct tmk_term *t, uint32_t p, int *ret_power)
{
    int power = 0;
    for (uint8_t i = 0; i < t->n; i++)
        if (t->factors[i].a == p || t->factors[i].b == p)
            power += t->factors[i].is_inverse ? -1 : 1;
    if (ret_power)
        *ret_power = power;
    return power != 0;
}

static void write_term_factor(FILE *out, const struct tmk_factor *f, unsigned power,
                              const char *const *names)
{
    if (f->a == f->b)
        fputs(names[f->a], out);
    else
        fprintf(out, "min(%s,%s)", names[f->a], names[f->b]);
    if (power > 1)
        fprintf(out, "^%u", power);
}

static bool is_same_factor(const struct tmk_factor *f, const struct tmk_factor *g)
{
    return f->a == g->a && f->b == g->b && f->is_inverse == g->is_inverse;
}

static void write_side(FILE *out, const struct tmk_term *t, bool is_inverse,
                       const char *const *names)
{
    bool is_first = true;
    for (uint8_t i = 0; i < t->n; i++) {
        unsigned power = 1;
        if (t->factors[i].is_inverse != is_inverse)
            continue;
        while (i + 1 < t->n && is_same_factor(&t->factors[i], &t->factors[i + 1])) {
            power++;
            i++;
        }
        if (!is_first || is_inverse)
            fputc(is_inverse ? '/' : '*', out);
        write_term_factor(out, &t->factors[i], power, names);
        is_first = false;
    }
    if (is_first && !is_inverse)
        fputc('1', out);
}

const char *tmk_term_text(const struct tmk_term *t, const char *const *names, struct tmk_arena *a)
{
    char *text = NULL, *copy = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    if (!out)
        return NULL;
    write_side(out, t, false, names);
    write_side(out, t, true, names);
    if (fclose(out) == 0)
        copy = tmk_arena_text(a, text, n);
    free(text);
    return copy;
}
