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

#include "base/array.h"

enum {
    MOST = TMK_OOM_FORECAST_POINTS,
    MOST_PAIRS = MOST * (MOST - 1) / 2,
    N_STARTS = 12,
    MOST_CURVES = 4,
    MOST_MIDDLE = 64
};

#define LEAST_SCALE 1e-6 /* of the capacity: too little to be called noise */
#define RECOVERED 0.1    /* of the range: a point that near to the highest has recovered */
#define BEND_PART 0.025  /* share of the rise that a line may bend by, */
#define BEND_ERRORS 2.5  /* or this many errors of the bend */
#define PART_ERRORS 3.5  /* errors that a fifth may be off by: there are five */
#define LEAST_NOISE 2    /* at least the residuals divided by this are noise */
#define LINE_PART 0.03   /* share of the rise that a line may miss by, */
#define CURVE_PART 0.02  /* and a curve */
#define JUMP_PART 0.45   /* share of the rise that one jump may make */
#define MUCH_BETTER 0.8  /* of what a line misses by, at most: then a curve is better */
#define FADING 0.25      /* share of its slope that growth loses at its very end, */
#define FADING_ERRORS 3  /* by as many errors */
#define AS_GOOD 1.15     /* a second curve may miss by that much more and still be a doubt */
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
        double middle[MOST_MIDDLE];
        uint64_t begin = i, stride = (end - i) / MOST_MIDDLE + 1;
        unsigned n_middle = 0;
        double y = points[i].bytes;
        for (; i < end; i++) {
            y = points[i].bytes > y ? points[i].bytes : y;
            if ((i - begin) % stride == 0)
                middle[n_middle++] = points[i].bytes;
        }
        ret->x[ret->n] = points[end - 1].x;
        ret->usual[ret->n] = median_of_values(middle, n_middle);
        ret->y[ret->n++] = y;
    }
}

static double middle_of(double a, double b, double c)
{
    return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

/* The second largest fall, or half of the largest if that is more. Of three neighbours the middle
 * one counts, so that a spike is no fall. */
static double usual_fall(const struct tmk_growth_series *s)
{
    double largest = 0, second = 0, last = s->y[0];
    for (unsigned i = 1; i < s->n; i++) {
        double y = i + 1 < s->n ? middle_of(s->y[i - 1], s->y[i], s->y[i + 1]) : s->y[i];
        double fall = last - y;
        last = y;
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
    ret->start = (points[0].x - last) / ret->spacing;
    for (unsigned i = 0; i < ret->n; i++) {
        ret->x[i] = (ret->x[i] - last) / ret->spacing;
        ret->y[i] /= capacity;
        ret->usual[i] /= capacity;
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

/* Write the residuals from point `first` on to `ret`, in order of x. */
static unsigned residuals_of(const struct tmk_growth_fit *f, const struct tmk_growth_series *s,
                             unsigned first, double *ret)
{
    unsigned n = 0;
    for (unsigned i = first; i < s->n; i++)
        ret[n++] = s->y[i] - tmk_growth_curve_at(&f->curve, s->x[i]);
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

/* The noise of the points fitted: at most their scale, and less where neighbours are even, since
 * what a fit misses of a smooth curve is no noise. */
static double noise_of_fit(const struct tmk_growth_fit *f, const struct tmk_growth_series *s)
{
    return fmin(fmax(unevenness_of_series(s, f->first), f->scale / LEAST_NOISE), f->scale);
}

/* The slope of the last `n` residuals. */
static double slope_of_rests(const struct tmk_growth_fit *f, const struct tmk_growth_series *s,
                             unsigned n)
{
    struct tmk_growth_series rests = {.n = n};
    for (unsigned i = 0; i < n; i++) {
        unsigned at = s->n - n + i;
        rests.x[i] = s->x[at];
        rests.y[i] = s->y[at] - tmk_growth_curve_at(&f->curve, s->x[at]);
    }
    return theil_sen_slope(&rests, 0, n);
}

/* Whether the growth goes on at its end as it did. */
static void measure_tail(struct tmk_growth_fit *f, const struct tmk_growth_series *s, double like)
{
    unsigned third = f->n / 3 > 5 ? f->n / 3 : 5, sixth = f->n / 6 > 5 ? f->n / 6 : 5;
    double slower = -slope_of_rests(f, s, third), fading = -slope_of_rests(f, s, sixth);
    f->tail = f->curve.slope != 0 ? 1 - slower / f->curve.slope : 0;
    f->tail_z = slower / (slope_error(f->scale, third) * like);
    f->is_fading =
        fading > FADING * f->curve.slope &&
        fading > FADING_ERRORS * slope_error(noise_of_fit(f, s), sixth) * sqrt(1 + s->width);
}

static struct tmk_growth_fit fit_growth_line(const struct tmk_growth_series *s, unsigned first)
{
    struct tmk_growth_fit f = {.first = first, .n = s->n - first};
    double rests[MOST], copy[MOST];
    f.curve.slope = theil_sen_slope(s, first, s->n);
    unsigned n = residuals_of(&f, s, first, rests);
    memcpy(copy, rests, n * sizeof *copy);
    f.curve.level = median_of_values(copy, n);
    f.other = f.curve;
    for (unsigned i = 0; i < n; i++)
        rests[i] -= f.curve.level;
    double like = fmax(autocorrelation_factor(rests, n), sqrt(1 + s->width));
    f.scale = residual_scale(rests, n);
    f.z = f.curve.slope / (slope_error(f.scale, n) * like);
    f.rise = f.curve.slope * (s->x[s->n - 1] - s->x[first]);
    f.bend = (part_median(rests, n, 0, 3) + part_median(rests, n, 2, 3)) / 2 -
             part_median(rests, n, 1, 3);
    measure_tail(&f, s, like);
    return f;
}

/* The error of the bend. */
static double bend_error(const struct tmk_growth_fit *f, const struct tmk_growth_series *s)
{
    return SIGMA_OF_MEDIAN * noise_of_fit(f, s) * sqrt(1.5 / (f->n / 3.0));
}

/* The largest step up from one level to another: two points both lie above the two before. A spike
 * is none. */
static double largest_jump(const struct tmk_growth_series *s, unsigned first)
{
    double most = 0;
    for (unsigned i = first + 1; i < s->n; i++) {
        double after = i + 1 < s->n ? fmin(s->y[i], s->y[i + 1]) : s->y[i];
        double before = i > first + 1 ? fmax(s->y[i - 1], s->y[i - 2]) : s->y[i - 1];
        most = fmax(most, after - before);
    }
    return most;
}

/* No fifth of the points lies off the fit by more than noise explains, or `least`. */
static bool is_followed(const struct tmk_growth_fit *f, const struct tmk_growth_series *s,
                        double least)
{
    double rests[MOST], error = SIGMA_OF_MEDIAN * noise_of_fit(f, s) / sqrt(f->n / 5.0);
    unsigned n = residuals_of(f, s, f->first, rests);
    for (unsigned i = 0; i < 5; i++)
        if (fabs(part_median(rests, n, i, 5)) > fmax(PART_ERRORS * error, least))
            return false;
    return true;
}

static bool is_straight_fit(const struct tmk_growth_fit *f, const struct tmk_growth_series *s)
{
    double rise = fabs(f->rise);
    return fabs(f->bend) <= fmax(BEND_ERRORS * bend_error(f, s), BEND_PART * rise) &&
           is_followed(f, s, LINE_PART * rise) &&
           largest_jump(s, f->first) <= fmax(JUMP_PART * rise, 4 * f->scale);
}

/* ---- a curve ---- */

/* The last points do not leave the curve, and no single jump makes half of its rise. */
static bool is_good_curve(const struct tmk_growth_fit *f, const struct tmk_growth_series *s)
{
    double rests[MOST], error = SIGMA_OF_MEDIAN * noise_of_fit(f, s) / sqrt(f->n / 9.0);
    unsigned n = residuals_of(f, s, f->first, rests);
    double most = fmax(BEND_ERRORS * error, 2 * CURVE_PART * f->rise);
    return is_followed(f, s, CURVE_PART * f->rise) && fabs(part_median(rests, n, 8, 9)) <= most &&
           largest_jump(s, f->first) <= fmax(JUMP_PART * f->rise, 4 * f->scale);
}

static double mean_rest(const struct tmk_growth_fit *f, const struct tmk_growth_series *s)
{
    double rests[MOST], sum = 0;
    unsigned n = residuals_of(f, s, f->first, rests);
    for (unsigned i = 0; i < n; i++)
        sum += fabs(rests[i]);
    return sum / n;
}

/* What is tried; the last two only where growth gets slower. A power begins where the points do or,
 * in parts of their span, before. */
static const struct {
    enum tmk_growth_family family;
    double before;
} families[] = {{TMK_GROWTH_EXPONENTIAL, 0},
                {TMK_GROWTH_POWER, 0},
                {TMK_GROWTH_HYPERBOLA, 0},
                {TMK_GROWTH_POWER, 0.15}};

/* Take the best of the families' curves; the other stays as the doubt where it is nearly as good.
 */
static bool fit_growth_curve(const struct tmk_growth_series *s, const struct tmk_growth_fit *line,
                             bool may_accelerate, struct tmk_growth_fit *ret)
{
    struct tmk_growth_fit f = *line;
    double miss_of_line = mean_rest(line, s);
    const double *x = s->x + f.first, *y = s->y + f.first;
    double start = f.first == 0 ? s->start : s->x[f.first - 1], rests[MOST];
    int turn = line->bend > 0 ? 1 : -1;
    if (f.n < TMK_GROWTH_FIT_LEAST * 3 / 2 || (turn > 0 && !may_accelerate))
        return false;
    double best = INFINITY, second = INFINITY;
    for (unsigned i = 0; i < (turn > 0 ? 2 : TMK_N(families)) && best > LEAST_SCALE; i++) {
        struct tmk_growth_curve c;
        double before = start + families[i].before * x[0];
        double miss = tmk_growth_curve_fit(x, y, f.n, before, families[i].family, turn, &c);
        if (miss < best) {
            f.other = f.curve;
            second = best;
            f.curve = c;
            best = miss;
        } else if (miss < second) {
            f.other = c;
            second = miss;
        }
    }
    if (best > MUCH_BETTER * miss_of_line)
        return false;
    if (second > AS_GOOD * best + LEAST_SCALE)
        f.other = f.curve;
    f.turn = turn;
    if (f.curve.slope <= 0)
        return false;
    unsigned n = residuals_of(&f, s, f.first, rests);
    f.scale = residual_scale(rests, n);
    f.rise = f.curve.level - tmk_growth_curve_at(&f.curve, s->x[f.first]);
    double like = fmax(autocorrelation_factor(rests, n), sqrt(1 + s->width));
    f.z = f.rise * sqrt(n / 12.0) / (f.scale * like);
    f.bend = 0;
    measure_tail(&f, s, like);
    if (!is_good_curve(&f, s))
        return false;
    *ret = f;
    return true;
}

/* ---- the end ---- */

static int compare_falling(const void *va, const void *vb)
{
    double a = *(const double *)va, b = *(const double *)vb;
    return (a < b) - (a > b);
}

void tmk_growth_fit_rest(struct tmk_growth_fit *f, const struct tmk_growth_series *s)
{
    residuals_of(f, s, f->first, f->rest);
    qsort(f->rest, f->n, sizeof f->rest[0], compare_falling);
}

struct tmk_growth_fit tmk_growth_fit_end(const struct tmk_growth_series *s, unsigned first,
                                         bool may_accelerate)
{
    unsigned n = s->n - first, stride = n / N_STARTS ? n / N_STARTS : 1, n_curves = 0;
    struct tmk_growth_fit f;
    for (unsigned at = first;; at += stride) {
        f = fit_growth_line(s, at);
        bool is_straight = is_straight_fit(&f, s), is_bent = fabs(f.bend) > bend_error(&f, s);
        if ((!is_straight || is_bent) && n_curves++ < MOST_CURVES &&
            fit_growth_curve(s, &f, may_accelerate, &f))
            break;
        if (is_straight || at + stride + TMK_GROWTH_FIT_LEAST > s->n)
            break;
    }
    tmk_growth_fit_rest(&f, s);
    return f;
}
