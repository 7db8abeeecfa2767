/* SPDX-License-Identifier: MIT */
/* forecast/outlook.c - see outlook.h.
 *
 * outlook_fit.c finds the line that the series follows now. Here it is drawn on to the capacity.
 * What the points lie above and below it counts too: with noise the first to reach the capacity is
 * a high one, earlier than the line. If a point lies r above the line as often as so far, then
 * points get there from the time on at which the line plus r is there; the sum of such times is how
 * many are to be expected until t, and where that is ln 2, the odds are even.
 *
 * The bounds add what is not known of the slope, and that slopes change (DRIFT). How often such
 * bounds hold was counted on made-up series and fitted (weights below, bench/forecast_score --fit),
 * by what can be seen at the time of the forecast; that is the confidence. */
#include "forecast/outlook.h"

#include <math.h>

#include "forecast/outlook_fit.h"

#define GROWS_Z 4.0      /* slope over its error, from which on it grows */
#define LEAST_RISE 0.005 /* of the capacity, over the points fitted */
#define FARTHEST 50.0    /* times the span fitted: what lies beyond is no forecast */
#define NEVER 1e9
#define DRIFT 0.06       /* by so much slopes change, of themselves, */
#define DRIFT_FAR 0.03   /* and for each time the span fitted that is looked ahead */
#define MOST_UNSURE 0.67 /* of the slope */
#define MOST_LATE 4.0    /* times the middle */
#define SIDE 1.2816      /* of a normal distribution: a tenth lies beyond */
#define NEARLY_FULL 0.9  /* of the capacity: one larger step would do */
#define LEAST_SURE 0.4   /* what passes for growth at all came true as often, in the set fitted */
#define MOST_SURE 0.97

/* For an alarm. */
#define ALARM_SURE 0.7  /* confidence */
#define ALARM_Z 10.0    /* slope over its error */
#define ALARM_NEAR 5.0  /* times the span fitted, or a quarter of z where that is more */
#define ALARM_NEW 0.5   /* of half the rise, that is above all that was before */
#define ALARM_BEND 0.05 /* of the rise, that it may bend down by, */
#define ALARM_FALL 0.6  /* fall now and then, */
#define ALARM_FELL 0.35 /* and have fallen to where the fit begins */

/* ---- when ---- */

static double clip(double v, double low, double high)
{
    return fmin(fmax(v, low), high);
}

/* x at which the fit, with another slope, plus `rest` is at the capacity. */
static double meets(const struct tmk_line_fit *f, double slope, double rest)
{
    double need = 1 - f->level - rest;
    if (need <= 0)
        return 0;
    double square = slope * slope + 4 * f->curve * need;
    return square < 0 ? NEVER : 2 * need / (slope + sqrt(square)); /* also where curve is 0 */
}

/* x by which `expected` points are to be expected at the capacity; at the latest, where the lowest
 * of them would be. */
static double when(const struct tmk_line_fit *f, double slope, double expected)
{
    double sum = 0; /* of the times at which those that count so far begin to */
    for (unsigned i = 0; i < f->n; i++) {
        double next = meets(f, slope, f->rest[i]);
        if (i > 0 && i * next - sum >= expected * f->n)
            return (expected * f->n + sum) / i;
        sum += next;
    }
    double last = meets(f, slope, f->rest[f->n - 1]);
    return fmin((expected * f->n + sum) / f->n, last);
}

/* Of how many equal jumps the rise could be made: what is made of few is a matter of chance. */
static double jumps_of(const struct tmk_fit_series *s, const struct tmk_line_fit *f)
{
    double sum = 0, squares = 0;
    for (unsigned i = f->first + 1; i < s->n; i++) {
        double jump = fmax(s->y[i] - s->y[i - 1], 0);
        sum += jump;
        squares += jump * jump;
    }
    return squares > 0 ? sum * sum / squares : 1;
}

/* By what part of itself the slope may be wrong: a tenth lies beyond. */
static double unsure_of(const struct tmk_outlook *o, const struct tmk_fit_series *s,
                        const struct tmk_line_fit *f, double ahead)
{
    double drift = DRIFT + DRIFT_FAR * fmin(ahead, 10), chance = 0;
    if (o->shape == TMK_SHAPE_STAIRS) /* of those seen, and of those to come */
        chance = (1 + 1 / fmax(ahead, 0.1)) / jumps_of(s, f);
    return sqrt(SIDE * SIDE * (1 / (f->z * f->z) + chance) + drift * drift);
}

static void find_time(struct tmk_outlook *o, const struct tmk_fit_series *s,
                      const struct tmk_line_fit *f)
{
    double middle = when(f, f->slope, M_LN2), ahead = middle / f->n;
    double unsure = unsure_of(o, s, f, ahead);
    double faster = f->curve == 0 ? clip(4.5 * f->bend / f->rise * (1 + ahead), 0, 1) : 0;
    o->to_oom = middle;
    o->low =
        fmin(when(f, f->slope * (1 + sqrt(unsure * unsure + faster * faster)), -log(0.9)), middle);
    o->high = when(f, f->slope * (1 - fmin(unsure, MOST_UNSURE)), -log(0.1));
    o->high = clip(o->high, middle, middle * MOST_LATE);
    o->has_time = middle <= FARTHEST * f->n;
}

/* ---- how surely ---- */

/* Of find_features(), in its order; `forecast_score --fit` prints this line. */
static const double weights[TMK_OUTLOOK_FEATURES] = {-0.335, 0.582,  -0.138, -0.797, 0.089,
                                                     0.522,  -0.127, -0.253, -0.548, -0.735,
                                                     -0.135, 1.405,  -0.152};

/* From how much higher it fell to where the fit begins: as when garbage was collected. */
static double fall_before(const struct tmk_fit_series *s, const struct tmk_line_fit *f)
{
    double fall = 0;
    for (unsigned i = 0; i < f->first; i++)
        fall = fmax(fall, s->y[i] - s->y[f->first]);
    return fall;
}

static void find_features(struct tmk_outlook *o, const struct tmk_fit_series *s,
                          const struct tmk_line_fit *f, double new_high)
{
    double *v = o->features;
    double bend = f->curve == 0 ? f->bend / f->rise : 0;
    v[0] = 1;
    v[1] = clip(log(f->z / GROWS_Z), 0, 4);
    v[2] = clip(log(o->to_oom / f->n), -3, 4); /* how far it is */
    v[3] = clip(1 - f->tail, 0, 1);            /* slower at its end, */
    v[4] = clip(f->tail - 1, 0, 1);            /* or faster */
    v[5] = log((double)f->n / TMK_LINE_FIT_LEAST);
    v[6] = (double)f->n / s->n; /* of all that was seen */
    v[7] = clip(-bend, 0, 0.1) * 10;
    v[8] = clip(bend, 0, 0.1) * 10;
    v[9] = clip(1 - new_high, 0, 1); /* it was as high before */
    v[10] = clip(fmax(s->fall, fall_before(s, f)) / f->rise, 0, 1);
    v[11] = o->shape == TMK_SHAPE_STAIRS;
    v[12] = f->curve != 0;
}

static double confidence_of(const double *features)
{
    double sum = 0;
    for (unsigned i = 0; i < TMK_OUTLOOK_FEATURES; i++)
        sum += weights[i] * features[i];
    return clip(1 / (1 + exp(-sum)), LEAST_SURE, MOST_SURE);
}

/* ---- what follows ---- */

/* How much of what the fit rose is above all that was before it: 0 when it has been so high
 * before. */
static double new_high_of(const struct tmk_fit_series *s, const struct tmk_line_fit *f)
{
    double before = 0;
    for (unsigned i = 0; i < f->first + f->n / 2; i++)
        before = fmax(before, s->y[i]);
    return (f->level - before) / (f->rise / 2);
}

static enum tmk_outlook_shape shape_of(const struct tmk_line_fit *f, const struct tmk_fit_series *s)
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

/* Surely, and it goes on at its end, does not bend down, is higher than it ever was, and is more
 * than what it gives back now and then. */
static bool is_alarm(const struct tmk_outlook *o, const struct tmk_fit_series *s,
                     const struct tmk_line_fit *f, double new_high)
{
    bool goes_on = f->tail_z < 2.5 || (f->tail >= 0.5 && f->tail_z < 4) || f->tail >= 0.85;
    bool is_near = o->to_oom / s->spacing <= f->n * fmax(ALARM_NEAR, f->z / 4);
    return o->confidence >= ALARM_SURE && f->z >= ALARM_Z && is_near && goes_on &&
           new_high >= ALARM_NEW && f->bend >= -ALARM_BEND * f->rise &&
           s->fall <= ALARM_FALL * f->rise && fall_before(s, f) <= ALARM_FELL * f->rise;
}

static enum tmk_risk risk_of(const struct tmk_outlook *o, const struct tmk_fit_series *s,
                             const struct tmk_line_fit *f, double new_high,
                             const struct tmk_outlook_terms *terms)
{
    double span = (f->n - 1) * s->spacing; /* without warm-up */
    if (o->has_time && span >= terms->least_span && is_alarm(o, s, f, new_high))
        return o->to_oom <= terms->soon ? TMK_RISK_CRITICAL : TMK_RISK_HIGH;
    bool is_full = o->highest >= NEARLY_FULL * terms->capacity_bytes;
    return is_full || o->has_time ? TMK_RISK_MEDIUM : TMK_RISK_LOW;
}

struct tmk_outlook tmk_outlook_look(const struct tmk_outlook_point *points, uint64_t n,
                                    const struct tmk_outlook_terms *terms)
{
    struct tmk_outlook o = {0};
    struct tmk_fit_series s;
    for (uint64_t i = 0; i < n; i++)
        o.highest = fmax(o.highest, points[i].bytes);
    if (!tmk_fit_draw(points, n, terms->capacity_bytes, &s))
        return o;
    struct tmk_line_fit f = tmk_fit_end(&s, tmk_fit_envelope(&s));
    double new_high = 0;
    if (f.slope > 0 && f.z >= GROWS_Z && f.rise >= LEAST_RISE) {
        o.slope = f.slope * terms->capacity_bytes / s.spacing;
        o.shape = shape_of(&f, &s);
        new_high = new_high_of(&s, &f);
        find_time(&o, &s, &f);
    }
    if (o.has_time) {
        find_features(&o, &s, &f, new_high);
        o.confidence = confidence_of(o.features);
        o.to_oom *= s.spacing;
        o.low *= s.spacing;
        o.high *= s.spacing;
    }
    o.risk = risk_of(&o, &s, &f, new_high, terms);
    return o;
}
