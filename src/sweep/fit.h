/* SPDX-License-Identifier: MIT */
/* sweep/fit.h - fit how memory grows with the parameters of a sweep, and estimate cells that were
 * not tried.
 *
 * Each category of the peak (parameter, activation, ...) is a sum of terms with coefficients that
 * cannot be negative (non-negative least squares): a constant, terms linear in each parameter,
 * products of them, and squares where a line does not explain the figures. The peak is the sum over
 * categories. The terms of a category are chosen by leaving each cell out in turn (leave-one-out),
 * not by the best fit. Parameters with values that are no numbers split the sweep: each combination
 * of them is fitted by itself.
 *
 *     struct tmk_fit *f = NULL;
 *     if (tmk_fit_make(results, TMK_FIT_ALLOCATED, &f, &err) != 0) ...
 *     struct tmk_estimate e = tmk_fit_cell(f, i);
 *     ... e.bytes, between e.low and e.high ...
 *
 * A peak is the largest of several moments, and the parameters may decide which one. Then the
 * allocated memory jumps, and no sum of terms follows it. So the peak is also fitted as a whole and
 * as the largest of its stages' peaks, and estimates use the way that does best on left-out cells.
 * Errors are relative to a cell's own peak. */
#ifndef TMK_SWEEP_FIT_H
#define TMK_SWEEP_FIT_H

#include "sweep/results.h"

enum tmk_fit_of {
    TMK_FIT_ALLOCATED, /* peak_allocated, by category */
    TMK_FIT_RESERVED,  /* peak_reserved as a whole: the memory that a GPU must have */
};

enum {
    TMK_FIT_LEAST = 3,   /* configurations that must be done */
    TMK_FIT_MOST = 1024, /* about this many are drawn at random from a larger grid */
};

struct tmk_estimate {
    bool known; /* else nothing is known, and the rest is 0 */
    double bytes;
    double low, high; /* bounds that hold nine times in ten, if the model is right */
};

/* A term of the model, for texts: {"activation", "batch*seq^2", 12.5, 0.3, NULL}. */
struct tmk_fit_term {
    const char *category; /* or "peak", "reserved", "stage forward" for the other ways */
    const char *text;     /* "1": the constant */
    double coefficient;   /* bytes */
    double error;         /* standard error of the coefficient */
    const char *where;    /* "attention=flash": the cells that the term is for; NULL: all */
};

struct tmk_fit;

/* Make a fit. 0; TMK_ENOMEM; TMK_EINVAL with the reason: too few cells are done. The results are
 * borrowed until close. */
int tmk_fit_make(const struct tmk_results *r, enum tmk_fit_of of, struct tmk_fit **ret,
                 struct tmk_error *err);
struct tmk_fit *tmk_fit_close(struct tmk_fit *f);

/* Estimate what cell `c` of the results needs, measured or not. */
struct tmk_estimate tmk_fit_cell(const struct tmk_fit *f, uint32_t c);
/* The same for any values: `numbers` for numeric parameters, `choice` for the others; both have an
 * entry for each parameter of the results. */
struct tmk_estimate tmk_fit_at(const struct tmk_fit *f, const double *numbers,
                               const uint32_t *choice);
/* Find a cell at the edge of the grid that does not follow the others, as where another stage has
 * the peak from there on (a crossover). Nothing beyond the grid is estimated then. False: none. */
bool tmk_fit_is_edge_off(const struct tmk_fit *f, uint32_t *ret_cell);
/* The way in which cell `c` is estimated: "category", "peak", "stage", "reserved"; NULL: it is
 * not. */
const char *tmk_fit_way(const struct tmk_fit *f, uint32_t c);
/* Whether cell `c` ran out of memory although it should have fitted into its device. Then the fit
 * cannot be trusted there, or another process used part of the device. */
bool tmk_fit_contradicts(const struct tmk_fit *f, uint32_t c);

/* |estimate from the others - measured| / measured: the median and the worst over all
 * configurations, or over a sample of them if they are more than 64. A configuration is left out
 * with all its repeats, and terms are chosen again without it. NaN: too few cells. */
double tmk_fit_left_out_median(const struct tmk_fit *f);
double tmk_fit_left_out_worst(const struct tmk_fit *f);
/* The same for the configuration of cell `c` alone; NaN: it was not left out. */
double tmk_fit_left_out(const struct tmk_fit *f, uint32_t c);
uint32_t tmk_fit_n_configurations(const struct tmk_fit *f); /* how many it was made from */

/* The terms by category first, then those of the way that makes the estimates, if that is another
 * one. */
uint32_t tmk_fit_n_terms(const struct tmk_fit *f);
const struct tmk_fit_term *tmk_fit_term(const struct tmk_fit *f, uint32_t i);

/* The effect of a numeric parameter with all others as in cell `c`: the estimates at its smallest
 * and largest measured value, and the parts of the change by the parameter's power in the terms
 * (constant terms have no part). */
struct tmk_fit_effect {
    bool known;
    uint32_t n_values; /* measured values; a curve needs three */
    double from, to;   /* the values */
    double bytes_from, bytes_to;
    double linear, squared, inverse; /* parts of bytes_to - bytes_from */
};
struct tmk_fit_effect tmk_fit_effect(const struct tmk_fit *f, uint32_t p, uint32_t c);

/* The largest whole value of numeric parameter `p` that fits into `capacity` with the others as in
 * cell `c`, by the estimate's high bound, so that it does fit. 0: none fits, or nothing is known;
 * UINT64_MAX: no limit, because the peak does not depend on it. */
uint64_t tmk_fit_largest(const struct tmk_fit *f, uint32_t p, uint32_t c, uint64_t capacity);
/* The same by the low bound: larger values do not fit. */
uint64_t tmk_fit_largest_possible(const struct tmk_fit *f, uint32_t p, uint32_t c,
                                  uint64_t capacity);

#endif
