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

#include "forecast/oom_forecast_fit.h"

#define GROWS_Z 4.0          /* slope over its error: from here on it is growth */
#define LEAST_RISE 0.005     /* rise over the points fitted, as a share of the capacity */
#define FARTHEST 50.0        /* times the span fitted: an OOM beyond that is not forecast */
#define FARTHEST_WARM_UP 5.0 /* the same, while it may be warm-up */
#define WARM_UP_PARTS 12
#define NEVER 1e9
#define DRIFT 0.06       /* slopes change by this share of themselves, */
#define DRIFT_FAR 0.03   /* and by this much more per span looked ahead */
#define MOST_UNSURE 0.67 /* share of the slope */
#define MOST_LATE 4.0    /* times the expected time */
#define SIDE 1.2816      /* in a normal distribution a tenth lies beyond */
#define MOSTLY_FULL 0.75 /* of the capacity: a program that starts rarely needs more */
#define NEARLY_FULL 0.9  /* of the capacity: one larger step could fail */
#define LEAST_SURE 0.4   /* any growth at all came true as often in the set fitted */
#define MOST_SURE 0.97

/* Conditions of an alarm. */
#define ALARM_SURE 0.7  /* confidence */
#define ALARM_Z 10.0    /* slope over its error */
#define ALARM_NEAR 5.0  /* times the span fitted, or z / 4 where that is more */
#define ALARM_NEW 0.5   /* share of half the rise that is above all earlier points */
#define ALARM_BEND 0.05 /* share of the rise that the fit may bend down by, */
#define ALARM_FALL 0.6  /* that the series may fall now and then, */
#define ALARM_FELL 0.35 /* and have fallen by just before the fit begins */

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

/* x at which the fit with slope `slope`, plus `rest`, reaches the capacity. */
static double x_at_capacity(const struct tmk_growth_fit *f, double slope, double rest)
{
    double need = 1 - f->level - rest;
    if (need <= 0)
        return 0;
    double square = slope * slope + 4 * f->curve * need;
    return square < 0 ? NEVER : 2 * need / (slope + sqrt(square)); /* also where curve is 0 */
}

/* x by which `expected` points are expected at the capacity; at the latest where the point with the
 * lowest residual would be. */
static double x_of_expected(const struct tmk_growth_fit *f, double slope, double expected)
{
    double sum = 0; /* of the times from which the points counted so far reach it */
    for (unsigned i = 0; i < f->n; i++) {
        double next = x_at_capacity(f, slope, f->rest[i]);
        if (i > 0 && i * next - sum >= expected * f->n)
            return (expected * f->n + sum) / i;
        sum += next;
    }
    double last = x_at_capacity(f, slope, f->rest[f->n - 1]);
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

static void find_oom_time(struct tmk_oom_forecast *oom, const struct tmk_growth_series *s,
                          const struct tmk_growth_fit *f, double farthest)
{
    double middle = x_of_expected(f, f->slope, M_LN2), ahead = middle / f->n;
    double unsure = slope_doubt_of(oom, s, f, ahead);
    double faster = f->curve == 0 ? clip_value(4.5 * f->bend / f->rise * (1 + ahead), 0, 1) : 0;
    oom->to_oom = middle;
    oom->low =
        fmin(x_of_expected(f, f->slope * (1 + sqrt(unsure * unsure + faster * faster)), -log(0.9)),
             middle);
    oom->high = x_of_expected(f, f->slope * (1 - fmin(unsure, MOST_UNSURE)), -log(0.1));
    oom->high = clip_value(oom->high, middle, middle * MOST_LATE);
    oom->has_time = middle <= farthest * f->n;
}

/* ---- how surely ---- */

/* Weights of the features, in the order of find_forecast_features(); `forecast_score --fit` prints
 * this line. */
static const double weights[TMK_OOM_FORECAST_FEATURES] = {-0.335, 0.582,  -0.138, -0.797, 0.089,
                                                          0.522,  -0.127, -0.253, -0.548, -0.735,
                                                          -0.135, 1.405,  -0.152};

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
    double bend = f->curve == 0 ? f->bend / f->rise : 0;
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
    v[12] = f->curve != 0;
}

static double oom_confidence_of(const double *features)
{
    double sum = 0;
    for (unsigned i = 0; i < TMK_OOM_FORECAST_FEATURES; i++)
        sum += weights[i] * features[i];
    return clip_value(1 / (1 + exp(-sum)), LEAST_SURE, MOST_SURE);
}

/* ---- shape and risk ---- */

/* Which part of the fit's rise is above all earlier points: 0 when use has been as high before. */
static double new_high_of(const struct tmk_growth_series *s, const struct tmk_growth_fit *f)
{
    double before = 0;
    for (unsigned i = 0; i < f->first + f->n / 2; i++)
        before = fmax(before, s->y[i]);
    return (f->level - before) / (f->rise / 2);
}

static enum tmk_growth_shape growth_shape_of(const struct tmk_growth_fit *f,
                                             const struct tmk_growth_series *s)
{
    unsigned still = 0;
    for (unsigned i = f->first + 1; i < s->n; i++)
        still += s->y[i] - s->y[i - 1] <= f->slope / 5;
    if (f->curve > 0)
        return TMK_SHAPE_ACCELERATING;
    if (still * 10 >= (f->n - 1) * 6)
        return TMK_SHAPE_STAIRS;
    return f->curve < 0 || f->tail < 0.5 ? TMK_SHAPE_SLOWING : TMK_SHAPE_STEADY;
}

/* An alarm needs growth that is sure, goes on at the end, does not bend down, exceeds all earlier
 * use, and exceeds what is freed now and then. */
static bool is_growth_alarm(const struct tmk_oom_forecast *oom, const struct tmk_growth_series *s,
                            const struct tmk_growth_fit *f, double new_high)
{
    bool goes_on = f->tail_z < 2.5 || (f->tail >= 0.5 && f->tail_z < 4) || f->tail >= 0.85;
    bool is_near = oom->to_oom / s->spacing <= f->n * fmax(ALARM_NEAR, f->z / 4);
    return oom->confidence >= ALARM_SURE && f->z >= ALARM_Z && is_near && goes_on &&
           new_high >= ALARM_NEW && f->bend >= -ALARM_BEND * f->rise &&
           s->fall <= ALARM_FALL * f->rise && fall_before_fit(s, f) <= ALARM_FELL * f->rise;
}

/* Growth may be warm-up until it was seen for `least_span`. Waiting for that would be waiting for
 * the OOM where most of the capacity is in use, and less is left than the growth was seen for. */
static enum tmk_risk oom_risk_of(const struct tmk_oom_forecast *oom,
                                 const struct tmk_growth_series *s, const struct tmk_growth_fit *f,
                                 double new_high, const struct tmk_oom_forecast_terms *terms)
{
    double span = span_of_fit(s, f);
    bool is_soon = oom->to_oom <= terms->soon;
    bool is_imminent =
        is_soon && oom->to_oom <= span && oom->highest >= MOSTLY_FULL * terms->capacity_bytes;
    bool is_seen = span >= terms->least_span || is_imminent;
    if (oom->has_time && is_seen && is_growth_alarm(oom, s, f, new_high))
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

/* Fit the end of the series. A start that gets faster and faster does not go on so: of it only the
 * line that it follows now is drawn on. */
static struct tmk_growth_fit fit_growth(struct tmk_growth_series *s,
                                        const struct tmk_oom_forecast_terms *terms)
{
    unsigned first = tmk_growth_series_envelope(s);
    struct tmk_growth_fit f = tmk_growth_fit_end(s, first, true);
    if (f.curve > 0 && is_warm_up(s, &f, terms))
        f = tmk_growth_fit_end(s, first, false);
    return f;
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
    if (f.slope > 0 && f.z >= GROWS_Z && f.rise >= LEAST_RISE) {
        oom.slope = f.slope * terms->capacity_bytes / s.spacing;
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
    }
    oom.risk = oom_risk_of(&oom, &s, &f, new_high, terms);
    return oom;
}
