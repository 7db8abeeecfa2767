/* SPDX-License-Identifier: MIT */
/* forecast/outlook.h - when will it run out? A series of high-water marks against a capacity.
 *
 * Give the highest use of each step (or of each moment, by time) and what there is; get back
 * whether it grows, when it meets the capacity, between which bounds, and how surely:
 *
 *     struct tmk_outlook_point points[] = {{0, 1e9}, {1, 1.1e9}, ...};
 *     struct tmk_outlook o = tmk_outlook_look(points, n, &(struct tmk_outlook_terms){
 *         .capacity_bytes = 80e9, .least_points = ...});
 *     if (o.has_time)
 *         ... o.to_oom, o.low, o.high: in the unit of the points' x, from the last point on ...
 *
 * What `confidence` is of: "the use reaches the capacity between `low` and `high` from now, if the
 * job goes on for so long". Of the forecasts given 0.8 about 80 % come true: docs/forecast.md has
 * how that was fitted and measured, bench/forecast_score.c measures it.
 *
 * Pure: no memory is taken, nothing is kept, and the time it takes is bounded (about 0.1 ms). */
#ifndef TMK_FORECAST_OUTLOOK_H
#define TMK_FORECAST_OUTLOOK_H

#include <stdbool.h>
#include <stdint.h>

/* Series are drawn together to so many points. */
enum { TMK_OUTLOOK_POINTS = 60 };

/* Fewer finished steps than these raise no alarm: it may be warm-up. Of samples by time, ns. */
enum { TMK_OUTLOOK_LEAST_STEPS = 24, TMK_OUTLOOK_SOON_STEPS = 5 };
#define TMK_OUTLOOK_LEAST_NS 60e9
#define TMK_OUTLOOK_SOON_NS 30e9

struct tmk_outlook_point {
    double x;     /* a step's number or a time; never falls */
    double bytes; /* the most that was used in it */
};

struct tmk_outlook_terms {
    double capacity_bytes;
    double least_span; /* of x: nothing shorter is an alarm */
    double soon;       /* of x: within that it is critical */
};

/* What is at risk. The exact meaning is docs/forecast.md's. */
enum tmk_risk {
    TMK_RISK_UNKNOWN, /* too few points, or no capacity */
    TMK_RISK_LOW,
    TMK_RISK_MEDIUM,
    TMK_RISK_HIGH,
    TMK_RISK_CRITICAL,
};

enum tmk_outlook_shape {
    TMK_SHAPE_FLAT,         /* does not grow, as far as can be told */
    TMK_SHAPE_STEADY,       /* by the same each time */
    TMK_SHAPE_ACCELERATING, /* by more each time */
    TMK_SHAPE_STAIRS,       /* by jumps, and stays in between */
    TMK_SHAPE_SLOWING,      /* by less each time */
};

/* What the confidence is made of; for who fits it (bench/forecast_score.c). */
enum { TMK_OUTLOOK_FEATURES = 13 };

struct tmk_outlook {
    enum tmk_risk risk;
    enum tmk_outlook_shape shape;
    double highest; /* bytes, of all points; 0 without any */
    double slope;   /* bytes per unit of x, now; 0 when flat */
    bool has_time;  /* it grows towards the capacity: the next five are known */
    double to_oom, low, high;
    double confidence;
    double features[TMK_OUTLOOK_FEATURES];
};

struct tmk_outlook tmk_outlook_look(const struct tmk_outlook_point *points, uint64_t n,
                                    const struct tmk_outlook_terms *terms);

/* "low", "medium", "high", "critical"; NULL: unknown. */
const char *tmk_risk_text(enum tmk_risk risk);

/* Why it would run out, as far as who looks can tell. */
enum tmk_growth_cause {
    TMK_GROWTH_NONE,
    TMK_GROWTH_STEADY,        /* of a device: it grows, and from outside there is no more to see */
    TMK_GROWTH_LEAK,          /* what stays after each step grows */
    TMK_GROWTH_BATCH,         /* what a step needs grows, and is given back */
    TMK_GROWTH_STEPS_UP,      /* by jumps */
    TMK_GROWTH_FRAGMENTATION, /* what is reserved grows, what is needed does not */
    TMK_GROWTH_OTHER_PROCESS, /* what others have of the card grows */
    TMK_GROWTH_NEARLY_FULL,   /* does not grow, but there is little left */
};

/* "none", "leak", "growing_batch" and so on. */
const char *tmk_growth_cause_name(enum tmk_growth_cause cause);
/* What to do, a sentence each; NULL: no more. */
const char *tmk_growth_cause_advice(enum tmk_growth_cause cause, unsigned i);
/* The same in Chinese, of those causes that monitors of devices know; of others in English. */
const char *tmk_growth_cause_advice_zh(enum tmk_growth_cause cause, unsigned i);

#endif
