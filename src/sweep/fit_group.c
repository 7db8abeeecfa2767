/* SPDX-License-Identifier: MIT */
/* sweep/fit_group.c - a group of a fit: terms, left-out rows, estimates; see fit_internal.h.
 *
 * There are two kinds of bounds, and the wider one counts. The first propagates the model's errors
 * to a point: the weights of all rows in the estimate, times their errors when left out. Categories
 * err together, so their errors are added row by row before they are squared. This bound grows with
 * the distance from all measured points. The second is the error of rows that were left out with
 * terms chosen again. It also covers wrong models, but only near measured points. Neither covers a
 * wrongly chosen term outside the measured range, so there both are widened, by as much as series
 * with known formulas need. A bootstrap was rejected: a dozen rows that are a grid and no random
 * sample give designs that nobody would measure. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "kit/arena.h"
#include "sweep/curve.h"
#include "sweep/fit.h"
#include "sweep/fit_internal.h"
#include "sweep/nnls.h"
#include "sweep/terms.h"

enum {
    ALL_ROWS = 64,
    LEAST_ROWS = 16
}; /* rows that are left out: all up to ALL_ROWS, at least LEAST_ROWS of very many */

#define PREFERRED 0.8     /* another way's error must be below this share of the categories' */
#define GOOD_ENOUGH 0.01  /* error, as a share of a row: categories, which say why, are kept */
#define FALL 0.001        /* share of a row: a smaller change is no fall */
#define STILL 0.003       /* share of a row: a larger difference is a change */
#define OFF 0.03          /* share of a row: an edge that is farther off its fit, */
#define OFF_LEFT_OUT 0.05 /* and that the others miss by more than this */
#define OFF_TIMES 3       /* and by so many times what they miss of each other, is off */
#define OUTSIDE 0.25      /* bounds widen by this for each width of the range outside */
#define FARTHEST 4        /* at most this many widths: wider bounds would say nothing */

static double weight_of(const struct tmk_fit_group *g, uint32_t row)
{
    return sqrt(g->n_repeats[row]) / g->total[row];
}

/* ---- choosing terms ---- */

/* The only number in which two rows differ; n_numbers: there is none, or several. */
static uint32_t only_difference(const struct tmk_fit_group *g, const double *a, const double *b)
{
    uint32_t found = g->n_numbers;
    for (uint32_t k = 0; k < g->n_numbers; k++) {
        if (a[k] == b[k])
            continue;
        if (found < g->n_numbers)
            return g->n_numbers;
        found = k;
    }
    return found;
}

/* Find hints from pairs of rows that differ in one number. A number is capped by another if nothing
 * changes while it is the larger one; each must have been seen capped by the other. */
static void find_hints(const struct tmk_fit_group *g, struct tmk_terms_hints *ret)
{
    bool seen[TMK_TERMS_PARAMS][TMK_TERMS_PARAMS] = {0};
    bool moves[TMK_TERMS_PARAMS][TMK_TERMS_PARAMS] = {0};
    memset(ret, 0, sizeof *ret);
    for (uint32_t i = 0; i < g->m; i++)
        for (uint32_t j = 0; j < g->m; j++) {
            const double *a = g->x + (size_t)i * g->n_numbers, *b = g->x + (size_t)j * g->n_numbers;
            uint32_t k = only_difference(g, a, b);
            if (k == g->n_numbers || a[k] > b[k])
                continue;
            ret->falls[k] = ret->falls[k] || g->total[j] < (1 - FALL) * g->total[i];
            for (uint32_t p = 0; p < g->n_numbers; p++)
                if (p != k && a[k] > a[p]) {
                    seen[k][p] = true;
                    moves[k][p] =
                        moves[k][p] || fabs(g->total[j] - g->total[i]) > STILL * g->total[i];
                }
        }
    for (uint32_t k = 0; k < g->n_numbers; k++)
        for (uint32_t p = 0; p < g->n_numbers; p++)
            ret->caps[k][p] = seen[k][p] && seen[p][k] && !moves[k][p] && !moves[p][k];
}

static int find_terms(struct tmk_fit_group *g, struct tmk_arena *arena)
{
    struct tmk_terms_hints hints;
    find_hints(g, &hints);
    tmk_terms_find(g->x, g->m, g->n_numbers, &hints, &g->terms);
    g->a = tmk_arena_take(arena, (size_t)g->m * g->terms.n * sizeof *g->a);
    if (!g->a)
        return TMK_ENOMEM;
    for (uint32_t j = 0; j < g->terms.n; j++) {
        g->cost[j] = tmk_term_cost(&g->terms.items[j]);
        for (uint32_t i = 0; i < g->m; i++)
            g->a[(size_t)j * g->m + i] =
                weight_of(g, i) *
                tmk_term_value(&g->terms.items[j], g->x + (size_t)i * g->n_numbers);
    }
    return 0;
}

static void terms_at(const struct tmk_fit_group *g, const double *numbers, double *ret)
{
    for (uint32_t j = 0; j < g->terms.n; j++)
        ret[j] = tmk_term_value(&g->terms.items[j], numbers);
}

/* ---- curves ---- */

/* Fit a part without row `out` (m: with all rows). */
static int fit_part(const struct tmk_fit_group *g, const double *y, uint32_t out,
                    struct tmk_arena *arena, struct tmk_curve *ret)
{
    uint32_t m = out < g->m ? g->m - 1 : g->m;
    double *a = tmk_arena_take(arena, (size_t)m * g->terms.n * sizeof *a);
    double *b = tmk_arena_take(arena, m * sizeof *b);
    if (!a || !b)
        return TMK_ENOMEM;
    uint32_t at = 0;
    for (uint32_t i = 0; i < g->m; i++) {
        if (i == out)
            continue;
        b[at] = y[i] * weight_of(g, i);
        for (uint32_t j = 0; j < g->terms.n; j++)
            a[(size_t)j * m + at] = g->a[(size_t)j * g->m + i];
        at++;
    }
    const struct tmk_curve_problem p = {.a = a, .b = b, .cost = g->cost, .m = m, .n = g->terms.n};
    return tmk_curve_fit(&p, arena, ret);
}

/* Estimate a row from all others: 0 or TMK_ENOMEM. */
static int estimate_without(const struct tmk_fit_group *g, const struct tmk_fit_way *w,
                            uint32_t out, double *ret)
{
    struct tmk_arena scratch = {0};
    double row[TMK_TERMS_MOST], whole = 0;
    int rc = 0;
    terms_at(g, g->x + (size_t)out * g->n_numbers, row);
    for (uint32_t i = 0; rc == 0 && i < w->n_parts; i++) {
        struct tmk_curve c;
        rc = fit_part(g, w->parts[i].y, out, &scratch, &c);
        if (rc != 0)
            break;
        double v = tmk_curve_value(&c, row);
        whole = w->is_largest ? fmax(whole, v) : whole + v;
    }
    tmk_arena_fini(&scratch);
    *ret = whole;
    return rc;
}

/* Every stride-th row is left out. */
static uint32_t stride_of(uint32_t m)
{
    uint32_t n = m <= ALL_ROWS ? m : ALL_ROWS * ALL_ROWS / m;
    n = n < LEAST_ROWS ? (m < LEAST_ROWS ? m : LEAST_ROWS) : n;
    return m / n;
}

static int leave_way_cells_out(const struct tmk_fit_group *g, struct tmk_fit_way *w,
                               struct tmk_arena *arena)
{
    double sum = 0;
    uint32_t n = 0, stride = stride_of(g->m);
    w->left_out = tmk_arena_take(arena, g->m * sizeof *w->left_out);
    if (!w->left_out)
        return TMK_ENOMEM;
    for (uint32_t i = 0; i < g->m; i++) {
        double estimate;
        w->left_out[i] = NAN;
        if (i % stride != 0)
            continue;
        if (estimate_without(g, w, i, &estimate) != 0)
            return TMK_ENOMEM;
        w->left_out[i] = fabs(estimate - g->total[i]) / g->total[i];
        sum += w->left_out[i];
        n++;
    }
    w->mean = sum / n;
    return 0;
}

static int solve_way(const struct tmk_fit_group *g, struct tmk_fit_way *w, struct tmk_arena *arena)
{
    for (uint32_t i = 0; i < w->n_parts; i++)
        if (fit_part(g, w->parts[i].y, g->m, arena, &w->parts[i].curve) != 0)
            return TMK_ENOMEM;
    return leave_way_cells_out(g, w, arena);
}

int tmk_fit_rising(const void *va, const void *vb)
{
    double a = *(const double *)va, b = *(const double *)vb;
    return (a > b) - (a < b);
}

/* Find the spread: nine of ten new rows like these would err by less; with few rows it is the
 * largest error. */
static int find_spread(struct tmk_fit_group *g, struct tmk_arena *arena)
{
    double *known = tmk_arena_take(arena, g->m * sizeof *known);
    uint32_t n = 0;
    if (!known)
        return TMK_ENOMEM;
    for (uint32_t i = 0; i < g->m; i++)
        if (!isnan(g->best->left_out[i]))
            known[n++] = g->best->left_out[i];
    qsort(known, n, sizeof *known, tmk_fit_rising);
    uint32_t at = (uint32_t)ceil(0.9 * (n + 1));
    g->spread = n > 0 ? known[at < n ? at - 1 : n - 1] : 0;
    return 0;
}

/* Whether no other row has at least as much of every number. */
static bool is_at_edge(const struct tmk_fit_group *g, uint32_t row)
{
    const double *own = g->x + (size_t)row * g->n_numbers;
    for (uint32_t i = 0; i < g->m; i++) {
        const double *x = g->x + (size_t)i * g->n_numbers;
        bool is_above = i != row;
        for (uint32_t k = 0; k < g->n_numbers && is_above; k++)
            is_above = x[k] >= own[k];
        if (is_above)
            return false;
    }
    return true;
}

/* The median error of the rows that were left out, `but` aside. */
static double median_left_out(const struct tmk_fit_group *g, uint32_t but, double *scratch)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->m; i++)
        if (i != but && !isnan(g->best->left_out[i]))
            scratch[n++] = g->best->left_out[i];
    qsort(scratch, n, sizeof *scratch, tmk_fit_rising);
    return n > 0 ? scratch[n / 2] : NAN;
}

/* Find a row at the edge that the fit does not reach, and that the others tell nothing of, though
 * they tell each other. */
static int find_off_row(struct tmk_fit_group *g, struct tmk_arena *arena)
{
    double *scratch = tmk_arena_take(arena, g->m * sizeof *scratch);
    g->off_row = g->m;
    if (!scratch)
        return TMK_ENOMEM;
    for (uint32_t i = 0; i < g->m && g->off_row == g->m; i++) {
        double left_out = g->best->left_out[i];
        if (isnan(left_out) || left_out <= OFF_LEFT_OUT || !is_at_edge(g, i))
            continue;
        struct tmk_estimate e = tmk_fit_group_at(g, g->x + (size_t)i * g->n_numbers);
        if (e.known && fabs(e.bytes - g->total[i]) > OFF * g->total[i] &&
            left_out > OFF_TIMES * median_left_out(g, i, scratch))
            g->off_row = i;
    }
    return 0;
}

static void find_ranges(struct tmk_fit_group *g)
{
    for (uint32_t k = 0; k < g->n_numbers; k++) {
        g->from[k] = g->to[k] = g->x[k];
        for (uint32_t i = 1; i < g->m; i++) {
            double v = g->x[(size_t)i * g->n_numbers + k];
            g->from[k] = fmin(g->from[k], v);
            g->to[k] = fmax(g->to[k], v);
        }
    }
}

int tmk_fit_group_solve(struct tmk_fit_group *g, struct tmk_arena *arena)
{
    g->off_row = g->m;
    find_ranges(g);
    int rc = find_terms(g, arena);
    for (uint32_t i = 0; rc == 0 && i < g->n_ways; i++)
        rc = solve_way(g, &g->ways[i], arena);
    if (rc != 0)
        return rc;
    g->best = &g->ways[0];
    for (uint32_t i = 1; i < g->n_ways; i++)
        if (g->ways[i].mean < (g->best == &g->ways[0] ? PREFERRED : 1) * g->best->mean &&
            g->ways[0].mean > GOOD_ENOUGH)
            g->best = &g->ways[i];
    rc = find_spread(g, arena);
    return rc != 0 ? rc : find_off_row(g, arena);
}

/* ---- estimates ---- */

/* The quantile of Student's t with 5 % beyond it. */
static double student_quantile(uint32_t freedom)
{
    static const double table[] = {6.314, 6.314, 2.920, 2.353, 2.132, 2.015,
                                   1.943, 1.895, 1.860, 1.833, 1.812};
    return freedom < TMK_N(table) ? table[freedom] : 1.645 + 1.68 / freedom;
}

/* The largest part at a point. */
static uint32_t largest_part(const struct tmk_fit_way *w, const double *row)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < w->n_parts; i++)
        if (tmk_curve_value(&w->parts[i].curve, row) > tmk_curve_value(&w->parts[best].curve, row))
            best = i;
    return best;
}

/* The variance of the sum of parts [from, end) at a point: from the rows' errors, plus the error of
 * a new cell. */
static double estimate_variance(const struct tmk_fit_group *g, uint32_t from, uint32_t end,
                                const double *row, double value)
{
    const struct tmk_fit_part *parts = g->best->parts;
    double *weights = calloc((size_t)(end - from) * g->m, sizeof *weights), sum = 0;
    if (!weights)
        return INFINITY;
    for (uint32_t i = from; i < end; i++) {
        double *own = weights + (size_t)(i - from) * g->m;
        tmk_curve_weights(&parts[i].curve, row, own);
        for (uint32_t j = from; j <= i; j++) {
            double together = tmk_dot(parts[i].curve.rest, parts[j].curve.rest, g->m) / g->m;
            double shared = tmk_dot(own, weights + (size_t)(j - from) * g->m, g->m);
            sum += (i == j ? 1 : 2) * together * (shared + value * value);
        }
    }
    free(weights);
    return fmax(sum, 0);
}

static bool is_known_place(const struct tmk_fit_group *g, const double *numbers)
{
    for (uint32_t k = 0; k < g->n_numbers; k++)
        if (!isfinite(numbers[k]) || (!g->terms.varies[k] && numbers[k] != g->x[k]))
            return false;
    return true;
}

/* How far a point is outside the measured range: the distances in each number, in widths of its
 * range, added up. */
static double choice_distance(const struct tmk_fit_group *g, const double *numbers)
{
    double sum = 0;
    for (uint32_t k = 0; k < g->n_numbers; k++) {
        double out = fmax(fmax(numbers[k] - g->to[k], g->from[k] - numbers[k]), 0);
        sum += out > 0 ? out / (g->to[k] - g->from[k]) : 0;
    }
    return sum;
}

struct tmk_estimate tmk_fit_group_at(const struct tmk_fit_group *g, const double *numbers)
{
    const struct tmk_fit_way *w = g->best;
    double row[TMK_TERMS_MOST], value = 0;
    uint32_t from = 0, end = w->n_parts, most = 0;
    if (!is_known_place(g, numbers) || (g->off_row < g->m && choice_distance(g, numbers) > 0))
        return (struct tmk_estimate){.known = false};
    terms_at(g, numbers, row);
    if (w->is_largest) {
        from = largest_part(w, row);
        end = from + 1;
    }
    for (uint32_t i = from; i < end; i++) {
        value += tmk_curve_value(&w->parts[i].curve, row);
        most = w->parts[i].curve.n_chosen > most ? w->parts[i].curve.n_chosen : most;
    }
    double error = student_quantile(g->m > most ? g->m - most : 1) *
                   sqrt(estimate_variance(g, from, end, row, value));
    double half = fmax(error, g->spread * value) *
                  (1 + OUTSIDE * fmin(choice_distance(g, numbers), FARTHEST));
    return (struct tmk_estimate){.known = isfinite(value),
                                 .bytes = value,
                                 .low = fmax(value - half, 0),
                                 .high = value + half};
}

void tmk_fit_group_change(const struct tmk_fit_group *g, uint32_t k, const double *from,
                          const double *to, struct tmk_fit_effect *ret)
{
    const struct tmk_fit_way *w = g->best;
    double a[TMK_TERMS_MOST], b[TMK_TERMS_MOST];
    terms_at(g, from, a);
    terms_at(g, to, b);
    uint32_t first = w->is_largest ? largest_part(w, b) : 0;
    uint32_t end = w->is_largest ? first + 1 : w->n_parts;
    for (uint32_t i = first; i < end; i++) {
        const struct tmk_curve *c = &w->parts[i].curve;
        for (uint32_t j = 0; j < c->n_chosen; j++) {
            int power;
            uint32_t t = c->chosen[j];
            if (!tmk_term_has(&g->terms.items[t], k, &power))
                continue;
            double change = c->x[j] * (b[t] - a[t]);
            *(power > 1 ? &ret->squared : power < 0 ? &ret->inverse : &ret->linear) += change;
        }
    }
}
