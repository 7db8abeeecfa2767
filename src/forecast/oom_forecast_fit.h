/* SPDX-License-Identifier: MIT */
/* forecast/oom_forecast_fit.h - the line, or the curve, that the end of a series follows. Only
 * oom_forecast.c uses it. */
#ifndef TMK_FORECAST_OOM_FORECAST_FIT_H
#define TMK_FORECAST_OOM_FORECAST_FIT_H

#include "forecast/oom_forecast.h"
#include "forecast/oom_forecast_curve.h"

enum { TMK_GROWTH_FIT_LEAST = 8 }; /* points that a fit needs */

/* A reduced series: x counts back from the last point (0) in units of the mean distance between two
 * points, y is a share of the capacity. */
struct tmk_growth_series {
    unsigned n;
    double spacing; /* the mean distance, in the caller's unit */
    double start;   /* x of the first of the caller's points */
    double fall;    /* the second largest fall between neighbours, single spikes left out */
    unsigned width; /* how many points the envelope looks back */
    double x[TMK_OOM_FORECAST_POINTS], y[TMK_OOM_FORECAST_POINTS];
    double usual[TMK_OOM_FORECAST_POINTS]; /* the median where y is the maximum */
};

struct tmk_growth_fit {
    unsigned first, n;                    /* the points fitted: the last n, from `first` on */
    struct tmk_growth_curve curve;        /* what they follow, */
    struct tmk_growth_curve other;        /* and what they may follow as well */
    int turn;                             /* of the curve: -1 slower, 1 faster */
    double scale;                         /* robust standard deviation of `rest` */
    double z;                             /* slope divided by its error */
    double bend;                          /* how far the ends lie above the middle */
    double rise;                          /* of the line over its points */
    double tail;                          /* slope of the end divided by the slope; 1: unchanged */
    double tail_z;                        /* how many errors the end's slope is lower */
    bool is_fading;                       /* the very end is much slower, beyond noise */
    double rest[TMK_OOM_FORECAST_POINTS]; /* residual of each point, in falling order */
};

/* Reduce points to a series; false when there are too few for a fit. */
bool tmk_growth_series_make(const struct tmk_oom_forecast_point *points, uint64_t n,
                            double capacity, struct tmk_growth_series *ret);

/* Replace each point by the highest of the last few, in place: so many that a dip is filled if the
 * series has recovered from one as long before. Returns how many points at the start look back over
 * less than that. */
unsigned tmk_growth_series_envelope(struct tmk_growth_series *s);

/* Fit the longest end of the series that follows one line or curve; one that rises ever faster only
 * if it may. */
struct tmk_growth_fit tmk_growth_fit_end(const struct tmk_growth_series *s, unsigned first,
                                         bool may_accelerate);

/* Find the residuals again, of another series. */
void tmk_growth_fit_rest(struct tmk_growth_fit *f, const struct tmk_growth_series *s);

#endif
