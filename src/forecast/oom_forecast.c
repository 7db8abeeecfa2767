/* SPDX-License-Identifier: MIT */
/* forecast/oom_forecast.c - see oom_forecast.h.
 *
 * oom_forecast_fit.c finds the line that the series follows now. This file extends the line to the
 * capacity. The points' distances from the line (residuals) matter too: in a noisy series a high
 * point reaches the capacity before the line does. If points keep lying r above the line as often
 * as so far, they reach the capacity from the time on at which the line plus r does. Summed over
 * all residuals, that gives the expected number of such points until t; where it is ln 2, the odds
 * are even.
 *
 * The bounds add the uncertainty of the slope, and the fact that slopes change (DRIFT). How often
 * such bounds hold was counted on made-up series and fitted to what can be seen at the time of the
 * forecast (weights below, bench/forecast_score --fit); that is the confidence. */
#include "forecast/oom_forecast.h"

#include <math.h>
#include <string.h>

#include "forecast/oom_forecast_curve.h"
#include "forecast/oom_forecast_fit.h"

#define GROWS_Z 4.0          /* slope over its error: from here on it is growth */
#define LEAST_RISE 0.005     /* rise over the points fitted, as a share of the capacity */
#define CLEAR_Z 50.0         /* growth of the whole series as clear as that is looked at once */
#define MOST_OF_SERIES 0.6   /* that the usual points must follow a line or curve in */
#define FARTHEST 50.0        /* times the span fitted: an OOM beyond that is not forecast */
#define FARTHEST_WARM_UP 5.0 /* the same, while it may be warm-up */
#define WARM_UP_PARTS 12
#define DRIFT 0.06       /* slopes change by this share of themselves, */
#define DRIFT_FAR 0.03   /* and by this much more per span looked ahead */
#define MOST_UNSURE 0.67 /* share of the slope */
#define MOST_LATE 4.0    /* times the expected time */
#define SIDE 1.2816      /* in a normal distribution a tenth lies beyond */
#define MOSTLY_FULL 0.75 /* of the capacity: a program that starts rarely needs more */
#define NEARLY_FULL 0.9  /* of the capacity: one larger step could fail */
#define LEAST_SURE 0.05
#define MOST_SURE 0.92

/* Conditions of an alarm. */
#define ALARM_SURE 0.5      /* confidence */
#define ALARM_Z 10.0        /* slope over its error */
#define ALARM_NEAR 0.11     /* times the span fitted: growth may end, but hardly so soon */
#define ALARM_MIDDLE 0.4    /* the same, of the even odds: spikes may come earlier */
#define ALARM_NEAR_TIME 5.0 /* by time, or z / 4 where that is more */
#define ALARM_LEFT 0.25     /* share of the rise: and for so small a part of it */
#define ALARM_JUMPS 5       /* a rise of fewer equal jumps is a few phases */
#define ALARM_NEW 0.5       /* share of half the rise that is above all earlier points */
#define ALARM_BEND 0.05     /* share of the rise that the fit may bend down by, */
#define ALARM_FALL 0.6      /* that the series may fall now and then, */
#define ALARM_FELL 0.35     /* and have fallen by just before the fit begins */

/* How long the growth has been seen, without what came before it. */
static double span_of_fit(const struct tmk_growth_series *s, const struct tmk_growth_fit *f)
{
    return (f->n - 1) * s->spacing;
}

/* Whether a program that starts may be what fills the device. Steps begin after that. */
static bool is_warm_up(const struct tmk_growth_series *s, const struct tmk_growth_fit *f,
                       const struct tmk_oom_forecast_terms *terms)
{
    return terms->is_by_time && span_of_fit(s, f) < terms->least_span;
}

/* ---- when ---- */

static double clip_value(double v, double low, double high)
{
    return fmin(fmax(v, low), high);
}

/* x by which `expected` points are expected at the capacity; at the latest where the point with the
 * lowest residual would be. */
static double x_of_expected(const struct tmk_growth_fit *f, const struct tmk_growth_curve *c,
                            double slope, double expected)
{
    double sum = 0; /* of the times from which the points counted so far reach it */
    for (unsigned i = 0; i < f->n; i++) {
        double next = tmk_growth_curve_reaches(c, slope, f->rest[i]);
        if (i > 0 && i * next - sum >= expected * f->n)
            return (expected * f->n + sum) / i;
        sum += next;
    }
    double last = tmk_growth_curve_reaches(c, slope, f->rest[f->n - 1]);
    return fmin((expected * f->n + sum) / f->n, last);
}

/* How many equal jumps would make the rise. A rise made of few jumps is a matter of chance. */
static double equal_jumps_of(const struct tmk_growth_series *s, const struct tmk_growth_fit *f)
{
    double sum = 0, squares = 0;
    for (unsigned i = f->first + 1; i < s->n; i++) {
        double jump = fmax(s->y[i] - s->y[i - 1], 0);
        sum += jump;
        squares += jump * jump;
    }
    return squares > 0 ? sum * sum / squares : 1;
}

/* Share of itself by which the slope may be wrong: in a tenth of cases it is more. */
static double slope_doubt_of(const struct tmk_oom_forecast *oom, const struct tmk_growth_series *s,
                             const struct tmk_growth_fit *f, double ahead)
{
    double drift = DRIFT + DRIFT_FAR * fmin(ahead, 10), chance = 0;
    if (oom->shape == TMK_SHAPE_STAIRS) /* in the jumps seen, and in those to come */
        chance = (1 + 1 / fmax(ahead, 0.1)) / equal_jumps_of(s, f);
    return sqrt(SIDE * SIDE * (1 / (f->z * f->z) + chance) + drift * drift);
}

/* When the other curve, which fits about as well, reaches the capacity, in units of the time found.
 */
static double doubt_of_curve(const struct tmk_growth_fit *f, double middle)
{
    if (f->other.family == f->curve.family || middle <= 0)
        return 1;
    return clip_value(x_of_expected(f, &f->other, f->other.slope, M_LN2) / middle, 1 / MOST_LATE,
                      MOST_LATE);
}

static void find_oom_time(struct tmk_oom_forecast *oom, const struct tmk_growth_series *s,
                          const struct tmk_growth_fit *f, double farthest)
{
    const struct tmk_growth_curve *c = &f->curve;
    double middle = x_of_expected(f, c, c->slope, M_LN2), ahead = middle / f->n;
    double unsure = slope_doubt_of(oom, s, f, ahead), doubt = doubt_of_curve(f, middle);
    double faster = f->turn == 0 ? clip_value(4.5 * f->bend / f->rise * (1 + ahead), 0, 1) : 0;
    oom->to_oom = middle;
    oom->low =
        x_of_expected(f, c, c->slope * (1 + sqrt(unsure * unsure + faster * faster)), -log(0.9));
    oom->low = fmin(oom->low, middle * fmin(doubt, 1));
    oom->high = x_of_expected(f, c, c->slope * (1 - fmin(unsure, MOST_UNSURE)), -log(0.1));
    oom->high = clip_value(fmax(oom->high, middle * doubt), middle, middle * MOST_LATE);
    oom->has_time = middle <= farthest * f->n;
}

/* ---- how surely ---- */

/* Weights of the features, in the order of find_forecast_features(); `forecast_score --fit` prints
 * this line. */
static const double weights[TMK_OOM_FORECAST_FEATURES] = {
    0.313,  0.696,  -0.349, -1.333, -0.827, 0.571, 0.338,  1.188, 2.239,
    -1.472, -0.402, 2.361,  -2.355, -0.392, 0.592, -0.787, 0.700, -1.534};

/* How far the series fell to where the fit begins, as after a garbage collection. */
static double fall_before_fit(const struct tmk_growth_series *s, const struct tmk_growth_fit *f)
{
    double fall = 0;
    for (unsigned i = 0; i < f->first; i++)
        fall = fmax(fall, s->y[i] - s->y[f->first]);
    return fall;
}

static void find_forecast_features(struct tmk_oom_forecast *oom, const struct tmk_growth_series *s,
                                   const struct tmk_growth_fit *f, double new_high)
{
    double *v = oom->features;
    double bend = f->turn == 0 ? f->bend / f->rise : 0;
    v[0] = 1;
    v[1] = clip_value(log(f->z / GROWS_Z), 0, 4);
    v[2] = clip_value(log(oom->to_oom / f->n), -3, 4); /* how far ahead the OOM is */
    v[3] = clip_value(1 - f->tail, 0, 1);              /* the end is slower, */
    v[4] = clip_value(f->tail - 1, 0, 1);              /* or faster */
    v[5] = log((double)f->n / TMK_GROWTH_FIT_LEAST);
    v[6] = (double)f->n / s->n; /* share of the series that is fitted */
    v[7] = clip_value(-bend, 0, 0.1) * 10;
    v[8] = clip_value(bend, 0, 0.1) * 10;
    v[9] = clip_value(1 - new_high, 0, 1); /* use was as high before */
    v[10] = clip_value(fmax(s->fall, fall_before_fit(s, f)) / f->rise, 0, 1);
    v[11] = oom->shape == TMK_SHAPE_STAIRS;
    v[12] = f->turn > 0;
    v[13] = f->turn < 0;
    v[14] = fabs(log(doubt_of_curve(f, oom->to_oom)));
    v[15] = clip_value(log(oom->high / fmax(oom->low, oom->to_oom / 16)), 0, 4);
    v[16] = clip_value(log(f->z / GROWS_Z) - 4, 0, 4);
    v[17] = clip_value(f->curve.level, 0, 1);
}

static double oom_confidence_of(const double *features)
{
    double sum = 0;
    for (unsigned i = 0; i < TMK_OOM_FORECAST_FEATURES; i++)
        sum += weights[i] * features[i];
    return clip_value(1 / (1 + exp(-sum)), LEAST_SURE, MOST_SURE);
}

/* ---- shape and risk ---- */

/* Which part of the later half of the fit's rise is above all use before the fit begins: 0 when use
 * has been as high before. */
static double new_high_of(const struct tmk_growth_series *s, const struct tmk_growth_fit *f)
{
    double middle = tmk_growth_curve_at(&f->curve, s->x[f->first + f->n / 2]), before = middle;
    for (unsigned i = 0; i < f->first; i++)
        before = fmax(before, s->y[i]);
    double half = f->curve.level - middle;
    return half > 0 ? (f->curve.level - before) / half : 0;
}

static enum tmk_growth_shape growth_shape_of(const struct tmk_growth_fit *f,
                                             const struct tmk_growth_series *s)
{
    unsigned still = 0;
    for (unsigned i = f->first + 1; i < s->n; i++)
        still += s->y[i] - s->y[i - 1] <= f->curve.slope / 5;
    if (f->turn > 0)
        return TMK_SHAPE_ACCELERATING;
    if (still * 10 >= (f->n - 1) * 6)
        return TMK_SHAPE_STAIRS;
    return f->turn < 0 || f->tail < 0.5 ? TMK_SHAPE_SLOWING : TMK_SHAPE_STEADY;
}

/* An alarm needs growth that is sure, goes on at the end, does not bend down, exceeds all earlier
 * use, and exceeds what is freed now and then. */
static bool is_growth_sure(const struct tmk_oom_forecast *oom, const struct tmk_growth_series *s,
                           const struct tmk_growth_fit *f, double new_high)
{
    bool goes_on =
        !f->is_fading && (f->tail_z < 2.5 || (f->tail >= 0.5 && f->tail_z < 4) || f->tail >= 0.85);
    return oom->confidence >= ALARM_SURE && f->z >= ALARM_Z && goes_on && new_high >= ALARM_NEW &&
           f->bend >= -ALARM_BEND * f->rise && s->fall <= ALARM_FALL * f->rise &&
           fall_before_fit(s, f) <= ALARM_FELL * f->rise;
}

/* Whether so little of the way is left that hardly anything ends before. What fills (a buffer, a
 * cache, an epoch sorted by length) looks like a leak until it is full, so a job's steps raise an
 * alarm in the last tenth of the way. A device is watched by someone who wants to act in time, and
 * by time there are no such buffers: there any time that can be told counts. */
static bool is_alarm_near(const struct tmk_oom_forecast *oom, const struct tmk_growth_series *s,
                          const struct tmk_growth_fit *f,
                          const struct tmk_oom_forecast_terms *terms)
{
    double span = span_of_fit(s, f);
    if (terms->is_by_time)
        return oom->to_oom <= span * fmax(ALARM_NEAR_TIME, f->z / 4);
    double first = tmk_growth_curve_reaches(&f->curve, f->curve.slope, f->rest[0]);
    return first * s->spacing <= ALARM_NEAR * span && oom->to_oom <= ALARM_MIDDLE * span &&
           1 - f->curve.level - f->rest[0] <= ALARM_LEFT * f->rise &&
           equal_jumps_of(s, f) >= ALARM_JUMPS;
}

/* Growth may be warm-up until it was seen for `least_span`. Waiting for that would be waiting for
 * the OOM where most of the capacity is in use, and less is left than the growth was seen for. */
static enum tmk_risk oom_risk_of(const struct tmk_oom_forecast *oom,
                                 const struct tmk_growth_series *s, const struct tmk_growth_fit *f,
                                 const struct tmk_oom_forecast_terms *terms)
{
    double span = span_of_fit(s, f);
    bool is_soon = oom->to_oom <= terms->soon;
    bool is_imminent =
        is_soon && oom->to_oom <= span && oom->highest >= MOSTLY_FULL * terms->capacity_bytes;
    bool is_seen = span >= terms->least_span || is_imminent;
    bool is_near = is_alarm_near(oom, s, f, terms);
    if (oom->is_sure && is_seen && is_near)
        return is_soon ? TMK_RISK_CRITICAL : TMK_RISK_HIGH;
    bool is_full = oom->highest >= NEARLY_FULL * terms->capacity_bytes;
    return is_full || oom->has_time ? TMK_RISK_MEDIUM : TMK_RISK_LOW;
}

/* How many times the span of the fit an OOM may be ahead. In the warm-up that is less, and nothing
 * at its very beginning: what rises then may be the first half of a swing. */
static double farthest_time(const struct tmk_growth_series *s, const struct tmk_growth_fit *f,
                            const struct tmk_oom_forecast_terms *terms)
{
    if (!is_warm_up(s, f, terms))
        return FARTHEST;
    return span_of_fit(s, f) < terms->least_span / WARM_UP_PARTS ? -1 : FARTHEST_WARM_UP;
}

static bool is_growth(const struct tmk_growth_fit *f)
{
    return f->curve.slope > 0 && f->z >= GROWS_Z && f->rise >= LEAST_RISE;
}

/* Fit the end of the series from point `first` on. A start that gets faster and faster does not go
 * on so: of it only the line that it follows now is drawn on. */
static struct tmk_growth_fit fit_growth_from(const struct tmk_growth_series *s, unsigned first,
                                             const struct tmk_oom_forecast_terms *terms)
{
    struct tmk_growth_fit f = tmk_growth_fit_end(s, first, true);
    if (f.turn > 0 && is_warm_up(s, &f, terms))
        f = tmk_growth_fit_end(s, first, false);
    return f;
}

/* Fit the highest points or, where that shows the growth better, the usual ones: a few spikes may
 * tower above them. The latter counts over most of the series only: less is a part of a swing. */
static struct tmk_growth_fit fit_growth(struct tmk_growth_series *s,
                                        const struct tmk_oom_forecast_terms *terms)
{
    const struct tmk_growth_series all = *s;
    struct tmk_growth_series usual = *s;
    memcpy(usual.y, usual.usual, sizeof usual.y);
    struct tmk_growth_fit f = fit_growth_from(s, tmk_growth_series_envelope(s), terms);
    if (s->width == 0 && f.first == 0 && is_growth(&f) && f.z >= CLEAR_Z)
        return f;
    struct tmk_growth_fit of_usual = fit_growth_from(&usual, 0, terms);
    if (!is_growth(&of_usual) || of_usual.n < MOST_OF_SERIES * all.n ||
        (is_growth(&f) && of_usual.z < f.z))
        return f;
    *s = all;
    tmk_growth_fit_rest(&of_usual, s);
    return of_usual;
}

struct tmk_oom_forecast tmk_oom_forecast_make(const struct tmk_oom_forecast_point *points,
                                              uint64_t n,
                                              const struct tmk_oom_forecast_terms *terms)
{
    struct tmk_oom_forecast oom = {0};
    struct tmk_growth_series s;
    for (uint64_t i = 0; i < n; i++)
        oom.highest = fmax(oom.highest, points[i].bytes);
    if (!tmk_growth_series_make(points, n, terms->capacity_bytes, &s))
        return oom;
    struct tmk_growth_fit f = fit_growth(&s, terms);
    double new_high = 0;
    if (is_growth(&f)) {
        oom.slope = f.curve.slope * terms->capacity_bytes / s.spacing;
        oom.shape = growth_shape_of(&f, &s);
        new_high = new_high_of(&s, &f);
        find_oom_time(&oom, &s, &f, farthest_time(&s, &f, terms));
    }
    if (oom.has_time) {
        find_forecast_features(&oom, &s, &f, new_high);
        oom.confidence = oom_confidence_of(oom.features);
        oom.to_oom *= s.spacing;
        oom.low *= s.spacing;
        oom.high *= s.spacing;
        oom.is_sure = is_growth_sure(&oom, &s, &f, new_high);
    }
    oom.risk = oom_risk_of(&oom, &s, &f, terms);
    return oom;
}
