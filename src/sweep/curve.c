/* SPDX-License-Identifier: MIT */
/* sweep/curve.c - see curve.h. */
#include "sweep/curve.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"

enum { MOST_TERMS = 10, MOST_MOVES = 60, MOST_PAIRED = 64 };

#define GOOD 3e-3   /* error, as a share of a cell, that is good enough */
#define EXACT 1e-4  /* error, as a share of a cell, that counts as exact */
#define ALONE 1e-9  /* a row that no other row constrains has a leverage above 1 - ALONE */
#define BETTER 1e-9 /* share by which a score must improve, so that rounding causes no cycles */

_Static_assert((int)MOST_TERMS < (int)TMK_NNLS_MOST, "a term more is tried");

/* A set of candidates and its score. */
struct curve_trial {
    uint32_t set[TMK_NNLS_MOST];
    uint32_t n;
    double score;
    double squares; /* mean square of the errors of left-out rows */
};

struct curve_search {
    const struct tmk_curve_problem *p;
    uint32_t most; /* terms */
    double *a;     /* columns of a trial */
    struct tmk_nnls fit;
    struct curve_trial best;
};

/* Compute the errors of left-out rows; returns how many rows no other row constrains. */
static uint32_t leave_curve_cells_out(const struct tmk_curve_problem *p, const struct tmk_nnls *fit,
                                      const double *a, double *rest)
{
    uint32_t n_alone = 0;
    for (uint32_t i = 0; i < p->m; i++) {
        double r = p->b[i], own = 1 - tmk_nnls_leverage(fit, p->m, i);
        for (uint32_t k = 0; k < fit->n_used; k++)
            r -= a[(size_t)fit->used[k] * p->m + i] * fit->x[fit->used[k]];
        n_alone += own < ALONE;
        rest[i] = own < ALONE ? r : r / own;
    }
    return n_alone;
}

/* Solve for the set; candidates with coefficient 0 leave it. `rest` has room for a number for each
 * row. */
static void judge_trial(struct curve_search *s, struct curve_trial *t, double *rest)
{
    const struct tmk_curve_problem *p = s->p;
    double squares = 0, cost = 0;
    for (uint32_t k = 0; k < t->n; k++)
        memcpy(s->a + (size_t)k * p->m, p->a + (size_t)t->set[k] * p->m, p->m * sizeof *s->a);
    tmk_nnls_solve(&s->fit, s->a, p->m, t->n, p->b);
    uint32_t n_alone = leave_curve_cells_out(p, &s->fit, s->a, rest);
    for (uint32_t i = 0; i < p->m; i++)
        squares += rest[i] * rest[i];
    uint32_t n = 0;
    for (uint32_t k = 0; k < t->n; k++)
        if (s->fit.x[k] > 0) {
            cost += p->cost[t->set[k]];
            t->set[n++] = t->set[k];
        }
    t->n = n;
    t->squares = squares / p->m;
    t->score = p->m * log(t->squares + EXACT * EXACT) + log(p->m) * (cost + n_alone);
    if (n >= p->m && p->m > 1) /* it only reproduces its data */
        t->score = INFINITY;
}

static bool trial_holds(const struct curve_trial *t, uint32_t candidate)
{
    for (uint32_t k = 0; k < t->n; k++)
        if (t->set[k] == candidate)
            return true;
    return false;
}

static void compare_trial(struct curve_search *s, struct curve_trial *t, struct curve_trial *best,
                          double *rest)
{
    judge_trial(s, t, rest);
    if (t->score < best->score - BETTER)
        *best = *t;
}

/* Find the best set with one term more or less. */
static struct curve_trial best_neighbour(struct curve_search *s, double *rest)
{
    struct curve_trial best = s->best;
    for (uint32_t j = 0; j < s->p->n && s->best.n < s->most; j++) {
        struct curve_trial t = s->best;
        if (trial_holds(&t, j))
            continue;
        t.set[t.n++] = j;
        compare_trial(s, &t, &best, rest);
    }
    for (uint32_t k = 0; k < s->best.n; k++) {
        struct curve_trial t = s->best;
        t.set[k] = t.set[--t.n];
        compare_trial(s, &t, &best, rest);
    }
    return best;
}

/* Find the best set with one term exchanged. */
static struct curve_trial best_exchange(struct curve_search *s, double *rest)
{
    struct curve_trial best = s->best;
    for (uint32_t k = 0; k < s->best.n; k++)
        for (uint32_t j = 0; j < s->p->n; j++) {
            struct curve_trial t = s->best;
            if (trial_holds(&t, j))
                continue;
            t.set[k] = j;
            compare_trial(s, &t, &best, rest);
        }
    return best;
}

/* Whether one term explains everything, mostly the constant: then the search is over. */
static bool is_exact_search(const struct curve_search *s)
{
    double m = s->p->m;
    return s->best.n <= 1 && s->best.score < m * log(2 * EXACT * EXACT) + 2 * log(m);
}

/* Take steps until none improves the set. */
static void climb_trials(struct curve_search *s, double *rest)
{
    for (unsigned move = 0; move < MOST_MOVES && !is_exact_search(s); move++) {
        struct curve_trial next = best_neighbour(s, rest);
        if (next.score >= s->best.score)
            next = best_exchange(s, rest);
        if (next.score >= s->best.score)
            break;
        s->best = next;
    }
}

/* Find the best two terms beside the first one, which is the constant. */
static struct curve_trial best_pair(struct curve_search *s, double *rest)
{
    struct curve_trial best = {.score = INFINITY};
    for (uint32_t i = 1; i < s->p->n; i++)
        for (uint32_t j = i + 1; j < s->p->n; j++) {
            struct curve_trial t = {.set = {0, i, j}, .n = 3};
            compare_trial(s, &t, &best, rest);
        }
    return best;
}

/* Search from the empty set, and if the result is not good, from the best pair. Single steps easily
 * get stuck with a term that looks like two others together. */
static void look_for_terms(struct curve_search *s, double *rest)
{
    judge_trial(s, &s->best, rest);
    climb_trials(s, rest);
    if (s->best.squares < GOOD * GOOD || s->most < 3 || s->p->n > MOST_PAIRED)
        return;
    struct curve_trial first = s->best;
    s->best = best_pair(s, rest);
    climb_trials(s, rest);
    if (first.score <= s->best.score)
        s->best = first;
}

int tmk_curve_fit(const struct tmk_curve_problem *p, struct tmk_arena *arena, struct tmk_curve *ret)
{
    struct curve_search s = {.p = p, .most = p->m * 2 / 3 < MOST_TERMS ? p->m * 2 / 3 : MOST_TERMS};
    size_t room = (size_t)p->m * TMK_NNLS_MOST;
    s.most = s.most > 0 ? s.most : 1;
    s.a = tmk_arena_take(arena, room * sizeof *s.a);
    s.fit.q = tmk_arena_take(arena, room * sizeof *s.fit.q);
    double *rest = tmk_arena_take(arena, p->m * sizeof *rest);
    if (!s.a || !s.fit.q || !rest)
        return TMK_ENOMEM;
    look_for_terms(&s, rest);
    uint32_t n;
    do { /* until all terms of the best set have a coefficient */
        n = s.best.n;
        judge_trial(&s, &s.best, rest);
    } while (s.best.n != n);
    *ret = (struct tmk_curve){
        .m = p->m, .n_chosen = s.best.n, .fit = s.fit, .rest = rest, .score = s.best.score};
    memcpy(ret->chosen, s.best.set, sizeof ret->chosen);
    memcpy(ret->x, s.fit.x, sizeof ret->x);
    return 0;
}

double tmk_curve_value(const struct tmk_curve *c, const double *row)
{
    double sum = 0;
    for (uint32_t k = 0; k < c->n_chosen; k++)
        sum += c->x[k] * row[c->chosen[k]];
    return sum;
}

void tmk_curve_weights(const struct tmk_curve *c, const double *row, double *ret)
{
    double own[TMK_NNLS_MOST] = {0};
    for (uint32_t k = 0; k < c->n_chosen; k++)
        own[k] = row[c->chosen[k]];
    tmk_nnls_weights(&c->fit, c->m, own, ret);
}
