/* SPDX-License-Identifier: MIT */
/* forecast/oom_forecast_curve.c - see oom_forecast_curve.h.
 *
 * With its bend given, a curve is a line over a bent x, so level and slope follow from linear
 * equations. They are solved again with less weight for distant points, which makes the sum of
 * absolute distances small: spikes hardly count. The bend is found by trying a grid and then by
 * halving around the best (golden section). */
#include "forecast/oom_forecast_curve.h"

#include <math.h>

#include "forecast/oom_forecast.h"

enum { N_GRID = 7, N_REFINE = 7, N_ROUNDS = 3 };

#define LEAST_WEIGHT_AT 1e-5 /* of the capacity: points nearer than that weigh the same */
#define MOST_RATE 7.0        /* an exponential changes its slope by e^7 over its points, at most */
#define NEAREST_POLE 0.01    /* of the points' span before the first */
#define LEAST_POWER (-1.0)   /* 0 is a logarithm */
#define NEAREST_START 1e-9
#define MOST_POWER 5.0
#define GOLDEN 0.381966
#define FLAT_RATE 1e-9

/* x bent so that the curve is a line over it; 0 at 0, with slope 1 there. */
static double bent_x(const struct tmk_growth_curve *c, double x)
{
    if (c->family == TMK_GROWTH_EXPONENTIAL && fabs(c->bend) > FLAT_RATE)
        return expm1(c->bend * x) / c->bend;
    if (c->family == TMK_GROWTH_POWER) {
        double part = log(fmax(1 - x / c->start, NEAREST_START));
        return -c->start * (fabs(c->bend) > FLAT_RATE ? expm1(c->bend * part) / c->bend : part);
    }
    if (c->family == TMK_GROWTH_HYPERBOLA)
        return x / (1 - c->bend * x);
    return x;
}

double tmk_growth_curve_at(const struct tmk_growth_curve *c, double x)
{
    return c->level + c->slope * bent_x(c, x);
}

/* The x at which expm1(rate x) / rate is v. */
static double inverse_expm1(double rate, double v)
{
    if (fabs(rate) <= FLAT_RATE)
        return v;
    return rate * v > -1 ? log1p(rate * v) / rate : TMK_GROWTH_NEVER;
}

double tmk_growth_curve_reaches(const struct tmk_growth_curve *c, double slope, double rest)
{
    double need = 1 - c->level - rest, x = 0;
    if (need <= 0)
        return 0;
    if (slope <= 0)
        return TMK_GROWTH_NEVER;
    double bent = need / slope;
    if (c->family == TMK_GROWTH_EXPONENTIAL)
        x = inverse_expm1(c->bend, bent);
    else if (c->family == TMK_GROWTH_POWER)
        x = -c->start * expm1(inverse_expm1(c->bend, bent / -c->start));
    else if (c->family == TMK_GROWTH_HYPERBOLA)
        x = 1 + c->bend * bent > 0 ? bent / (1 + c->bend * bent) : TMK_GROWTH_NEVER;
    else
        x = bent;
    return fmin(x, TMK_GROWTH_NEVER);
}

struct curve_points {
    const double *x, *y;
    unsigned n;
};

/* Find level and slope for the bend in `c`. Returns the mean absolute distance. */
static double solve_level_and_slope(const struct curve_points *p, struct tmk_growth_curve *c)
{
    double bent[TMK_OOM_FORECAST_POINTS], weights[TMK_OOM_FORECAST_POINTS], sum = 0;
    if (p->n == 0)
        return 0;
    for (unsigned i = 0; i < p->n; i++) {
        bent[i] = bent_x(c, p->x[i]);
        weights[i] = 1;
    }
    for (unsigned round = 0; round < N_ROUNDS; round++) {
        double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
        for (unsigned i = 0; i < p->n; i++) {
            w += weights[i];
            wx += weights[i] * bent[i];
            wy += weights[i] * p->y[i];
            wxx += weights[i] * bent[i] * bent[i];
            wxy += weights[i] * bent[i] * p->y[i];
        }
        double spread = w * wxx - wx * wx;
        c->slope = spread > 0 ? (w * wxy - wx * wy) / spread : 0;
        c->level = (wy - c->slope * wx) / w;
        sum = 0;
        for (unsigned i = 0; i < p->n; i++) {
            double rest = fabs(p->y[i] - c->level - c->slope * bent[i]);
            sum += rest;
            weights[i] = 1 / fmax(rest, LEAST_WEIGHT_AT);
        }
    }
    return sum / p->n;
}

/* The bend at position 0 (a line) to 1 (the most) of what is tried. */
static double bend_at(const struct curve_points *p, enum tmk_growth_family family, int turn,
                      double at)
{
    double span = fmax(-p->x[0], 1);
    if (family == TMK_GROWTH_POWER)
        return turn > 0 ? pow(MOST_POWER, at) : 1 - (1 - LEAST_POWER) * at;
    if (family == TMK_GROWTH_HYPERBOLA) /* of one that slows the pole is before the first point */
        return turn * (turn < 0 ? 1 - pow(NEAREST_POLE, at) : MOST_RATE * at) / span;
    return turn * MOST_RATE * at / span;
}

/* Where a curve is tried: between the best of a grid and its neighbours. */
struct bend_search {
    const struct curve_points *points;
    struct tmk_growth_curve *curve;
    int turn;
};

static double try_bend(const struct bend_search *s, double at)
{
    s->curve->bend = bend_at(s->points, s->curve->family, s->turn, at);
    return solve_level_and_slope(s->points, s->curve);
}

static double best_of_grid(const struct bend_search *s)
{
    double best = 0, best_at = 0;
    for (unsigned i = 1; i <= N_GRID; i++) {
        double at = (double)i / N_GRID, miss = try_bend(s, at);
        if (i == 1 || miss < best) {
            best = miss;
            best_at = at;
        }
    }
    return best_at;
}

double tmk_growth_curve_fit(const double *x, const double *y, unsigned n, double start,
                            enum tmk_growth_family family, int turn, struct tmk_growth_curve *ret)
{
    struct curve_points p = {x, y, n};
    struct tmk_growth_curve c = {.family = family, .start = fmin(start, x[0])};
    struct bend_search s = {&p, &c, turn};
    double best_at = best_of_grid(&s), step = 1.0 / N_GRID;
    double low = best_at - step, high = fmin(best_at + step, 1);
    double a = low + GOLDEN * (high - low), b = high - GOLDEN * (high - low);
    double miss_a = try_bend(&s, a), miss_b = try_bend(&s, b);
    for (unsigned i = 0; i < N_REFINE; i++) {
        if (miss_a < miss_b) {
            high = b;
            b = a;
            miss_b = miss_a;
            a = low + GOLDEN * (high - low);
            miss_a = try_bend(&s, a);
        } else {
            low = a;
            a = b;
            miss_a = miss_b;
            b = high - GOLDEN * (high - low);
            miss_b = try_bend(&s, b);
        }
    }
    double miss = try_bend(&s, miss_a < miss_b ? a : b);
    *ret = c;
    return miss;
}
