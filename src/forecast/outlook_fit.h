/* SPDX-License-Identifier: MIT */
/* forecast/outlook_fit.h - outlook.c's own: the line, or the curve, that the end of a series
 * follows. */
#ifndef TMK_FORECAST_OUTLOOK_FIT_H
#define TMK_FORECAST_OUTLOOK_FIT_H

#include "forecast/outlook.h"

/* Drawn together: x counts back from the last point (0) by the mean distance of two points, y is a
 * share of the capacity. */
struct tmk_fit_series {
    unsigned n;
    double spacing; /* of x, in the caller's unit */
    double fall;    /* as far as it falls from a point to the next, more than once */
    unsigned width; /* of the envelope: points that were looked back */
    double x[TMK_OUTLOOK_POINTS], y[TMK_OUTLOOK_POINTS];
};

struct tmk_line_fit {
    unsigned first, n;               /* the points it is of: the last n, from `first` on */
    double level, slope, curve;      /* y = level + slope x + curve x^2 */
    double scale;                    /* of what is left: a robust standard deviation */
    double z;                        /* slope over its error */
    double bend;                     /* how far the ends lie over the middle */
    double rise;                     /* over its points */
    double tail;                     /* slope of its end over its slope; 1: goes on as it did */
    double tail_z;                   /* by how many errors the end's slope is less */
    double rest[TMK_OUTLOOK_POINTS]; /* what is left of each point, falling */
};

/* The points as a fit_series; false when there are too few for anything. */
bool tmk_fit_draw(const struct tmk_outlook_point *points, uint64_t n, double capacity,
                  struct tmk_fit_series *ret);

/* In place: each point becomes the highest of the last few, so many that dips which it has come
 * back from before are filled. Returns how many points at the start have no full past. */
unsigned tmk_fit_envelope(struct tmk_fit_series *s);

/* The longest end of the series that one line fits, or a curve that rises ever faster. */
struct tmk_line_fit tmk_fit_end(const struct tmk_fit_series *s, unsigned first);

enum { TMK_LINE_FIT_LEAST = 8 }; /* points */

#endif
