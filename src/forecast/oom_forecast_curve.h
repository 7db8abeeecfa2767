/* SPDX-License-Identifier: MIT */
/* forecast/oom_forecast_curve.h - curves that growth follows: a line, growth by a constant factor
 * (exponential), a power of the time, and a hyperbola.
 *
 * Each has a level and a slope at x = 0, which is now, and one parameter that says how it bends:
 * below 0 (below 1 of a power) it gets slower, above faster. An exponential or a hyperbola that
 * gets slower approaches a limit, the hyperbola later; a power above 0 has none. A power of 0 is a
 * logarithm. */
#ifndef TMK_FORECAST_OOM_FORECAST_CURVE_H
#define TMK_FORECAST_OOM_FORECAST_CURVE_H

enum tmk_growth_family {
    TMK_GROWTH_LINE,
    TMK_GROWTH_EXPONENTIAL,
    TMK_GROWTH_POWER,
    TMK_GROWTH_HYPERBOLA,
};

struct tmk_growth_curve {
    enum tmk_growth_family family;
    double level, slope; /* at x = 0 */
    double bend;         /* the rate of an exponential or hyperbola, the exponent of a power */
    double start;        /* where a power begins; below 0 */
};

/* x that never comes. */
#define TMK_GROWTH_NEVER 1e9

double tmk_growth_curve_at(const struct tmk_growth_curve *c, double x);

/* The x >= 0 at which the curve, with `slope` instead of its own and raised by `rest`, reaches 1.
 */
double tmk_growth_curve_reaches(const struct tmk_growth_curve *c, double slope, double rest);

/* Fit the curve of `family` that gets faster (turn 1) or slower (-1) to n points (x rising, the
 * last 0) so that the sum of the absolute distances is small. Returns the mean distance. */
double tmk_growth_curve_fit(const double *x, const double *y, unsigned n, double start,
                            enum tmk_growth_family family, int turn, struct tmk_growth_curve *ret);

#endif
