/* SPDX-License-Identifier: MIT */
/* forecast/oom_forecast.h - forecast when a growing series reaches a capacity.
 *
 * The caller gives the highest use of each step (or of each moment, by time) and the capacity. The
 * forecast says whether the use grows, when it reaches the capacity, between which bounds, and how
 * sure that is:
 *
 *     struct tmk_oom_forecast_point points[] = {{0, 1e9}, {1, 1.1e9}, ...};
 *     struct tmk_oom_forecast_terms terms = {.capacity_bytes = 80e9, .least_span = ...};
 *     struct tmk_oom_forecast f = tmk_oom_forecast_make(points, n, &terms);
 *     if (f.has_time)
 *         ... f.to_oom, f.low, f.high: in the unit of the points' x, after the last point ...
 *
 * `confidence` belongs to this statement: "the use reaches the capacity between `low` and `high`
 * from now, if the job goes on for so long". About 80 % of the forecasts with 0.8 come true.
 * docs/forecast.md says how that was fitted and measured; bench/forecast_score.c measures it.
 *
 * The functions are pure: they allocate nothing, keep nothing, and take bounded time (0.3 ms). */
#ifndef TMK_FORECAST_OOM_FORECAST_H
#define TMK_FORECAST_OOM_FORECAST_H

#include <stdbool.h>
#include <stdint.h>

/* A longer series is reduced to this many points. */
enum { TMK_OOM_FORECAST_POINTS = 60 };

/* The usual tmk_oom_forecast_terms: `least_span` (anything shorter may be warm-up) and `soon`, for
 * series by step and for series by time. */
enum { TMK_OOM_FORECAST_LEAST_STEPS = 24, TMK_OOM_FORECAST_SOON_STEPS = 5 };
#define TMK_OOM_FORECAST_LEAST_NS 60e9
#define TMK_OOM_FORECAST_SOON_NS 30e9

struct tmk_oom_forecast_point {
    double x;     /* a step's number or a time; never falls */
    double bytes; /* the highest use in it */
};

struct tmk_oom_forecast_terms {
    double capacity_bytes;
    double least_span; /* in x: growth over less is no alarm */
    double soon;       /* in x: an OOM within that is critical */
    bool is_by_time;   /* x is a time and not a step: programs that start are in the series too */
};

/* How likely an OOM is. docs/forecast.md defines the levels. */
enum tmk_risk {
    TMK_RISK_UNKNOWN, /* too few points, or no capacity */
    TMK_RISK_LOW,
    TMK_RISK_MEDIUM,
    TMK_RISK_HIGH,
    TMK_RISK_CRITICAL,
};

enum tmk_growth_shape {
    TMK_SHAPE_FLAT,         /* no growth that could be proven */
    TMK_SHAPE_STEADY,       /* grows by the same amount each time */
    TMK_SHAPE_ACCELERATING, /* grows by more each time */
    TMK_SHAPE_STAIRS,       /* grows by jumps, level in between */
    TMK_SHAPE_SLOWING,      /* grows by less each time */
};

/* The confidence is computed from these; bench/forecast_score.c fits their weights. */
enum { TMK_OOM_FORECAST_FEATURES = 18 };

struct tmk_oom_forecast {
    enum tmk_risk risk;
    enum tmk_growth_shape shape;
    double highest; /* bytes, over all points; 0 without any */
    double slope;   /* bytes per unit of x, now; 0 when flat */
    bool has_time;  /* use grows towards the capacity: the next five are known */
    double to_oom, low, high;
    double confidence;
    bool is_sure; /* has_time, and the growth is proven, goes on and exceeds all earlier use */
    double features[TMK_OOM_FORECAST_FEATURES];
};

struct tmk_oom_forecast tmk_oom_forecast_make(const struct tmk_oom_forecast_point *points,
                                              uint64_t n,
                                              const struct tmk_oom_forecast_terms *terms);

/* "low", "medium", "high", "critical"; NULL: unknown. */
const char *tmk_risk_text(enum tmk_risk risk);

/* Why memory would run out, as far as the observer can tell. */
enum tmk_growth_cause {
    TMK_GROWTH_NONE,
    TMK_GROWTH_STEADY,        /* a device's use grows; from outside there is no more to see */
    TMK_GROWTH_LEAK,          /* memory kept after a step grows */
    TMK_GROWTH_BATCH,         /* a step's need grows, and is freed after it */
    TMK_GROWTH_STEPS_UP,      /* use grows by jumps */
    TMK_GROWTH_FRAGMENTATION, /* reserved memory grows, allocated memory does not */
    TMK_GROWTH_OTHER_PROCESS, /* other processes' use of the device grows */
    TMK_GROWTH_NEARLY_FULL,   /* no growth, but little is left */
    TMK_GROWTH_FULL,          /* a device is full: requests fail or have failed */
    TMK_GROWTH_RAN_OUT,       /* a process on the device has run out of memory */
};

/* "none", "leak", "growing_batch" and so on. */
const char *tmk_growth_cause_name(enum tmk_growth_cause cause);
/* Sentence `i` of what to do at that risk; NULL: there are no more. */
const char *tmk_growth_cause_advice(enum tmk_growth_cause cause, enum tmk_risk risk, unsigned i);

#endif
