/* SPDX-License-Identifier: MIT */
/* forecast/oom_forecast_fit.c - see oom_forecast_fit.h.
 *
 * Slopes are Theil-Sen slopes (the median over all pairs of points), so that spikes do not count.
 * Only the longest straight end of the series is fitted, which leaves out what came before the
 * present regime (warm-up, another phase, a step up). An end is straight if its thirds do not bend
 * more than noise would and no single jump makes half of its rise. A fixed window was rejected: it
 * is too short for a slow leak and too long for one that began late. */
#include "forecast/oom_forecast_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = TMK_OOM_FORECAST_POINTS, MOST_PAIRS = MOST * (MOST - 1) / 2, N_STARTS = 12 };

#define LEAST_SCALE 1e-6 /* of the capacity: too little to be called noise */
#define RECOVERED 0.1    /* of the range: a point that near to the highest has recovered */
#define BEND_PART 0.025  /* share of the rise that a line may bend by, */
#define BEND_ERRORS 2.5  /* or this many errors of the bend */
#define LEAST_NOISE 2    /* at least the residuals divided by this are noise */
#define CURVE_PART 0.02  /* share of the rise that a curve may miss by */
#define JUMP_PART 0.45   /* share of the rise that one jump may make */
#define CURVE_SCALE 1.25 /* how much larger a curve's residuals may be than the line's */
#define SIGMA_OF_MAD 1.4826
#define SIGMA_OF_MEDIAN 1.2533 /* error of a median over that of a mean */

/* ---- medians ---- */

static void swap_doubles(double *a, double *b)
{
    double t = *a;
    *a = *b;
    *b = t;
}

/* The k-th smallest (Hoare's FIND); reorders. */
static double select_kth(double *v, int n, int k)
{
    int low = 0, high = n - 1;
    while (low < high) {
        double pivot = v[low + (high - low) / 2];
        int i = low, j = high;
        do {
            while (v[i] < pivot)
                i++;
            while (v[j] > pivot)
                j--;
            if (i <= j)
                swap_doubles(&v[i++], &v[j--]);
        } while (i <= j);
        if (j < k)
            low = i;
        if (k < i)
            high = j;
    }
    return v[k];
}

/* Reorders `v`; 0 if it is empty. */
static double median_of_values(double *v, unsigned n)
{
    if (n == 0)
        return 0;
    double upper = select_kth(v, (int)n, (int)n / 2);
    if (n % 2)
        return upper;
    double lower = v[0]; /* no value before n / 2 is above it */
    for (unsigned i = 1; i < n / 2; i++)
        lower = v[i] > lower ? v[i] : lower;
    return (lower + upper) / 2;
}

/* ---- reducing ---- */

/* One point per group of neighbours: its maximum, at the x where the group ends. The last groups
 * are full. */
static void group_points(const struct tmk_oom_forecast_point *points, uint64_t n,
                         struct tmk_growth_series *ret)
{
    uint64_t width = (n + MOST - 1) / MOST;
    uint64_t end = n % width ? n % width : width;
    ret->n = 0;
    for (uint64_t i = 0; i < n; end += width) {
        double y = points[i].bytes;
        for (; i < end; i++)
            y = points[i].bytes > y ? points[i].bytes : y;
        ret->x[ret->n] = points[end - 1].x;
        ret->y[ret->n++] = y;
    }
}

/* The second largest fall, or half of the largest if that is more. */
static double usual_fall(const struct tmk_growth_series *s)
{
    double largest = 0, second = 0;
    for (unsigned i = 1; i < s->n; i++) {
        double fall = s->y[i - 1] - s->y[i];
        if (fall > largest) {
            second = largest;
            largest = fall;
        } else if (fall > second) {
            second = fall;
        }
    }
    return fmax(second, largest / 2);
}

bool tmk_growth_series_make(const struct tmk_oom_forecast_point *points, uint64_t n,
                            double capacity, struct tmk_growth_series *ret)
{
    if (n < TMK_GROWTH_FIT_LEAST || !(capacity > 0) || !isfinite(capacity))
        return false;
    group_points(points, n, ret);
    double last = ret->x[ret->n - 1], span = last - ret->x[0];
    if (!(span > 0) || !isfinite(span))
        return false;
    ret->spacing = span / (ret->n - 1);
    for (unsigned i = 0; i < ret->n; i++) {
        ret->x[i] = (ret->x[i] - last) / ret->spacing;
        ret->y[i] /= capacity;
    }
    ret->fall = usual_fall(ret);
    ret->width = 0;
    return true;
}

/* ---- the envelope ---- */

/* How long the series stayed below its highest before it recovered: the second longest time, since
 * a single event tells nothing. */
static unsigned usual_dip(const struct tmk_growth_series *s)
{
    double least = s->y[0], most = s->y[0], top = s->y[0];
    for (unsigned i = 1; i < s->n; i++) {
        least = fmin(least, s->y[i]);
        most = fmax(most, s->y[i]);
    }
    unsigned longest = 0, second = 0, from = 0;
    for (unsigned i = 1; i < s->n; i++) {
        if (s->y[i] < top - RECOVERED * (most - least))
            continue;
        unsigned dip = i - from - 1;
        if (dip > longest) {
            second = longest;
            longest = dip;
        } else if (dip > second) {
            second = dip;
        }
        top = fmax(top, s->y[i]);
        from = i;
    }
    return second;
}

unsigned tmk_growth_series_envelope(struct tmk_growth_series *s)
{
    unsigned width = usual_dip(s),
             most = s->n > 2 * TMK_GROWTH_FIT_LEAST ? s->n - 2 * TMK_GROWTH_FIT_LEAST : 0;
    width = width < most ? width : most;
    for (unsigned i = s->n; i-- > 0;)
        for (unsigned k = 1; k <= width && k <= i; k++)
            s->y[i] = fmax(s->y[i], s->y[i - k]);
    s->width = width;
    return width;
}

/* ---- a line ---- */

static double theil_sen_slope(const struct tmk_growth_series *s, unsigned first, unsigned end)
{
    double slopes[MOST_PAIRS];
    unsigned n = 0;
    for (unsigned i = first; i < end; i++)
        for (unsigned j = i + 1; j < end; j++)
            if (s->x[j] > s->x[i])
                slopes[n++] = (s->y[j] - s->y[i]) / (s->x[j] - s->x[i]);
    return n ? median_of_values(slopes, n) : 0;
}

static double curve_value_at(const struct tmk_growth_fit *f, double x)
{
    return f->level + f->slope * x + f->curve * x * x;
}

/* Write the residuals from point `first` on to `ret`, in order of x. */
static unsigned residuals_of(const struct tmk_growth_fit *f, const struct tmk_growth_series *s,
                             unsigned first, double *ret)
{
    unsigned n = 0;
    for (unsigned i = first; i < s->n; i++)
        ret[n++] = s->y[i] - curve_value_at(f, s->x[i]);
    return n;
}

/* The robust standard deviation around 0. */
static double residual_scale(const double *rests, unsigned n)
{
    double sizes[MOST];
    for (unsigned i = 0; i < n; i++)
        sizes[i] = fabs(rests[i]);
    return fmax(SIGMA_OF_MAD * median_of_values(sizes, n), LEAST_SCALE);
}

/* The factor by which errors are larger because neighbours are alike (autocorrelation). */
static double autocorrelation_factor(const double *rests, unsigned n)
{
    double both = 0, each = 0;
    for (unsigned i = 0; i < n; i++) {
        each += rests[i] * rests[i];
        both += i > 0 ? rests[i] * rests[i - 1] : 0;
    }
    double r = each > 0 ? fmin(fmax(both / each, 0), 0.9) : 0;
    return sqrt((1 + r) / (1 - r));
}

/* The error of a slope over n consecutive points with that scale. */
static double slope_error(double scale, double n)
{
    return scale * sqrt(12 / (n * (n * n - 1)));
}

/* The median of part `i` of `parts`. */
static double part_median(const double *rests, unsigned n, unsigned i, unsigned parts)
{
    double copy[MOST];
    unsigned from = n * i / parts, m = n * (i + 1) / parts - from;
    memcpy(copy, rests + from, m * sizeof *copy);
    return median_of_values(copy, m);
}

static void measure_tail(struct tmk_growth_fit *f, const struct tmk_growth_series *s, double like)
{
    unsigned n = f->n / 3 > 5 ? f->n / 3 : 5;
    double slope = theil_sen_slope(s, s->n - n, s->n);
    f->tail = f->slope != 0 ? slope / f->slope : 0;
    f->tail_z = (f->slope - slope) / (slope_error(f->scale, n) * like);
}

static struct tmk_growth_fit fit_growth_line(const struct tmk_growth_series *s, unsigned first)
{
    struct tmk_growth_fit f = {.first = first, .n = s->n - first};
    double rests[MOST], copy[MOST];
    f.slope = theil_sen_slope(s, first, s->n);
    unsigned n = residuals_of(&f, s, first, rests);
    memcpy(copy, rests, n * sizeof *copy);
    f.level = median_of_values(copy, n);
    for (unsigned i = 0; i < n; i++)
        rests[i] -= f.level;
    double like = fmax(autocorrelation_factor(rests, n), sqrt(1 + s->width));
    f.scale = residual_scale(rests, n);
    f.z = f.slope / (slope_error(f.scale, n) * like);
    f.rise = f.slope * (s->x[s->n - 1] - s->x[first]);
    f.bend = (part_median(rests, n, 0, 3) + part_median(rests, n, 2, 3)) / 2 -
             part_median(rests, n, 1, 3);
    measure_tail(&f, s, like);
    return f;
}

/* How uneven neighbours are: jumps count, a smooth curve of any shape does not. */
static double unevenness_of_series(const struct tmk_growth_series *s, unsigned first)
{
    double squares = 0;
    for (unsigned i = first + 1; i + 1 < s->n; i++) {
        double turn = s->y[i - 1] - 2 * s->y[i] + s->y[i + 1];
        squares += turn * turn;
    }
    return sqrt(squares / (6.0 * (s->n - first - 2)));
}

/* The error of the bend. A curve's residuals from a line are not noise, so where neighbours are
 * even, less is allowed. */
static double bend_error(const struct tmk_growth_fit *f, const struct tmk_growth_series *s)
{
    double noise = fmin(fmax(unevenness_of_series(s, f->first), f->scale / LEAST_NOISE), f->scale);
    return SIGMA_OF_MEDIAN * noise * sqrt(1.5 / (f->n / 3.0));
}

static double largest_jump(const struct tmk_growth_series *s, unsigned first)
{
    double most = 0;
    for (unsigned i = first + 1; i < s->n; i++)
        most = fmax(most, s->y[i] - s->y[i - 1]);
    return most;
}

static bool is_straight_fit(const struct tmk_growth_fit *f, const struct tmk_growth_series *s)
{
    double rise = fabs(f->rise);
    return fabs(f->bend) <= fmax(BEND_ERRORS * bend_error(f, s), BEND_PART * rise) &&
           largest_jump(s, f->first) <= fmax(JUMP_PART * rise, 4 * f->scale);
}

/* ---- a curve ---- */

/* Solve the normal equations of y = a + b x + c x^2 with weights; false when they have no answer.
 */
static bool solve_parabola(const struct tmk_growth_series *s, unsigned first, const double *weights,
                           struct tmk_growth_fit *f)
{
    double p[5] = {0}, q[3] = {0};
    for (unsigned i = first; i < s->n; i++) {
        double w = weights[i - first], x = s->x[i];
        for (unsigned k = 0; k < 5; k++, w *= x) {
            p[k] += w;
            if (k < 3)
                q[k] += w * s->y[i];
        }
    }
    double d = p[0] * (p[2] * p[4] - p[3] * p[3]) - p[1] * (p[1] * p[4] - p[2] * p[3]) +
               p[2] * (p[1] * p[3] - p[2] * p[2]);
    if (!(fabs(d) > 1e-9))
        return false;
    f->level = (q[0] * (p[2] * p[4] - p[3] * p[3]) - p[1] * (q[1] * p[4] - q[2] * p[3]) +
                p[2] * (q[1] * p[3] - q[2] * p[2])) /
               d;
    f->slope = (p[0] * (q[1] * p[4] - q[2] * p[3]) - q[0] * (p[1] * p[4] - p[2] * p[3]) +
                p[2] * (p[1] * q[2] - p[2] * q[1])) /
               d;
    f->curve = (p[0] * (p[2] * q[2] - p[3] * q[1]) - p[1] * (p[1] * q[2] - p[2] * q[1]) +
                q[0] * (p[1] * p[3] - p[2] * p[2])) /
               d;
    return true;
}

/* Least squares, repeated with less weight for points that lie far off. */
static bool fit_parabola(const struct tmk_growth_series *s, struct tmk_growth_fit *f)
{
    double weights[MOST], rests[MOST];
    for (unsigned i = 0; i < MOST; i++)
        weights[i] = 1;
    for (unsigned round = 0; round < 5; round++) {
        if (!solve_parabola(s, f->first, weights, f))
            return false;
        unsigned n = residuals_of(f, s, f->first, rests);
        f->scale = residual_scale(rests, n);
        for (unsigned i = 0; i < n; i++) {
            double far = rests[i] / (2 * f->scale);
            weights[i] = 1 / (1 + far * far);
        }
    }
    return true;
}

/* No fifth of the points lies off the curve by more than noise explains. */
static bool is_good_parabola(const struct tmk_growth_fit *f, const struct tmk_growth_series *s)
{
    double rests[MOST], error = SIGMA_OF_MEDIAN * f->scale / sqrt(f->n / 5.0);
    unsigned n = residuals_of(f, s, f->first, rests);
    for (unsigned i = 0; i < 5; i++)
        if (fabs(part_median(rests, n, i, 5)) >
            fmax(BEND_ERRORS * error, CURVE_PART * fabs(f->rise)))
            return false;
    return true;
}

/* Fit a curve that rises ever faster to the longest end that has one which explains the line's own
 * points about as well as the line does. False: there is none. */
static bool find_rising_curve(const struct tmk_growth_series *s, unsigned first,
                              const struct tmk_growth_fit *line, struct tmk_growth_fit *ret)
{
    double rests[MOST];
    unsigned stride = (s->n - first) / N_STARTS ? (s->n - first) / N_STARTS : 1;
    for (unsigned at = first; at + TMK_GROWTH_FIT_LEAST * 3 / 2 < line->first; at += stride) {
        struct tmk_growth_fit f = fit_growth_line(s, at);
        if (f.bend <= BEND_ERRORS * bend_error(&f, s) || f.bend <= BEND_PART * f.rise)
            continue;
        if (!fit_parabola(s, &f) || f.curve <= 0 || f.slope <= 0 || !is_good_parabola(&f, s))
            continue;
        unsigned n = residuals_of(&f, s, line->first, rests);
        if (residual_scale(rests, n) > CURVE_SCALE * line->scale + BEND_PART / 2 * fabs(line->rise))
            continue;
        *ret = f;
        return true;
    }
    return false;
}

/* ---- the end ---- */

static int compare_falling(const void *va, const void *vb)
{
    double a = *(const double *)va, b = *(const double *)vb;
    return (a < b) - (a > b);
}

/* Whether the series bends down and a curve, returned, follows that. */
static bool fit_slowing_curve(const struct tmk_growth_series *s, const struct tmk_growth_fit *line,
                              struct tmk_growth_fit *ret)
{
    struct tmk_growth_fit f = *line;
    if (line->bend >= 0 || line->rise <= 0 || !fit_parabola(s, &f) || f.curve >= 0 ||
        !is_good_parabola(&f, s))
        return false;
    *ret = f;
    return true;
}

struct tmk_growth_fit tmk_growth_fit_end(const struct tmk_growth_series *s, unsigned first,
                                         bool may_accelerate)
{
    unsigned n = s->n - first, stride = n / N_STARTS ? n / N_STARTS : 1;
    struct tmk_growth_fit f = fit_growth_line(s, first), curve;
    bool is_slow = fit_slowing_curve(s, &f, &curve);
    for (unsigned at = first + stride;
         !is_straight_fit(&f, s) && !is_slow && at + TMK_GROWTH_FIT_LEAST <= s->n; at += stride) {
        f = fit_growth_line(s, at);
        is_slow = fit_slowing_curve(s, &f, &curve);
    }
    if (!is_straight_fit(&f, s) && is_slow)
        f = curve;
    else if (may_accelerate && find_rising_curve(s, first, &f, &curve))
        f = curve;
    residuals_of(&f, s, f.first, f.rest);
    qsort(f.rest, f.n, sizeof f.rest[0], compare_falling);
    return f;
}
