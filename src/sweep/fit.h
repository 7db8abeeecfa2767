/* SPDX-License-Identifier: MIT */
/* sweep/fit.h - how memory grows with the parameters of a sweep, and what that says of cells that
 * were not tried.
 *
 * Each category of the peak (parameter, activation, ...) is a sum of terms with coefficients that
 * cannot be negative (non-negative least squares): a constant, terms linear in each parameter,
 * products of them, and squares where they explain what a line does not. The peak is the sum over
 * categories. Which terms a category gets is decided by what leaving each cell out in turn says
 * (leave-one-out), not by what fits best. Parameters whose values are no numbers split the sweep:
 * each combination of them is fitted by itself.
 *
 *     struct tmk_fit *f = NULL;
 *     if (tmk_fit_make(results, TMK_FIT_ALLOCATED, &f, &err) != 0) ...
 *     struct tmk_estimate e = tmk_fit_cell(f, i);
 *     ... e.bytes, between e.low and e.high ...
 *
 * A peak is the largest of several moments, and which of them it is may change with the parameters:
 * then what was alive jumps, and no sum of terms follows it. So the peak is also fitted as a whole
 * and as the largest of its stages' peaks, and estimates are by the way that does best on cells
 * left out. Errors are relative: cells count by how far off they are in parts of their own peak. */
#ifndef TMK_SWEEP_FIT_H
#define TMK_SWEEP_FIT_H

#include "sweep/results.h"

enum tmk_fit_of {
    TMK_FIT_ALLOCATED, /* peak_allocated, by category */
    TMK_FIT_RESERVED,  /* peak_reserved as a whole: what a card must have */
};

enum {
    TMK_FIT_LEAST = 3,   /* configurations that must be done */
    TMK_FIT_MOST = 1024, /* of a grid with more, about so many are drawn by lot */
};

struct tmk_estimate {
    bool known; /* else there is nothing to go by, and the rest is 0 */
    double bytes;
    double low, high; /* nine times in ten, if the model is right */
};

/* A term of the model, for people: {"activation", "batch*seq^2", 12.5, 0.3, NULL}. */
struct tmk_fit_term {
    const char *category; /* "peak", "reserved", "stage forward": of the other ways */
    const char *text;     /* "1": the constant */
    double coefficient;   /* bytes */
    double error;         /* standard error of the coefficient */
    const char *where;    /* "attention=flash": the cells that it is of; NULL: all */
};

struct tmk_fit;

/* 0; TMK_ENOMEM; TMK_EINVAL with the reason where too few cells are done. The results are borrowed
 * until close. */
int tmk_fit_make(const struct tmk_results *r, enum tmk_fit_of of, struct tmk_fit **ret,
                 struct tmk_error *err);
struct tmk_fit *tmk_fit_close(struct tmk_fit *f);

/* What cell `c` of the results would need, measured or not. */
struct tmk_estimate tmk_fit_cell(const struct tmk_fit *f, uint32_t c);
/* The same for any values: `numbers` of numeric parameters, `choice` of the others; both have an
 * entry for each parameter of the results. */
struct tmk_estimate tmk_fit_at(const struct tmk_fit *f, const double *numbers,
                               const uint32_t *choice);
/* By which way cell `c` is estimated: "category", "peak", "stage", "reserved"; NULL: not at all. */
const char *tmk_fit_way(const struct tmk_fit *f, uint32_t c);
/* Whether cell `c` ran out of memory although it should have fitted into its device: then the fit
 * is not to be trusted there, or somebody else had part of the device. */
bool tmk_fit_contradicts(const struct tmk_fit *f, uint32_t c);

/* |estimate from the others - measured| / measured: the middle one and the worst of all
 * configurations; of many (over 64), of some spread over them. A configuration is left out with all
 * its repeats, and the choice of terms is made again without it. NaN: too few cells. */
double tmk_fit_left_out_median(const struct tmk_fit *f);
double tmk_fit_left_out_worst(const struct tmk_fit *f);
/* Of the configuration of cell `c` alone; NaN: it was not left out. */
double tmk_fit_left_out(const struct tmk_fit *f, uint32_t c);
uint32_t tmk_fit_n_configurations(const struct tmk_fit *f); /* that it was made from */

/* By category first, then those of the way that the estimates are by, where that is another. */
uint32_t tmk_fit_n_terms(const struct tmk_fit *f);
const struct tmk_fit_term *tmk_fit_term(const struct tmk_fit *f, uint32_t i);

/* What a numeric parameter does, all others as in cell `c`: the estimates at its smallest and
 * largest measured value, and the parts of the change by the power of the parameter in the terms
 * that make it (of the constant terms there is none). */
struct tmk_fit_effect {
    bool known;
    uint32_t n_values; /* that were measured; a curve needs three */
    double from, to;   /* the values */
    double bytes_from, bytes_to;
    double linear, squared, inverse; /* bytes of bytes_to - bytes_from */
};
struct tmk_fit_effect tmk_fit_effect(const struct tmk_fit *f, uint32_t p, uint32_t c);

/* The largest whole value of numeric parameter `p` that fits into `capacity`, the others as in cell
 * `c`: by the estimate's high bound, so that it does fit. 0: none does, or nothing is known;
 * UINT64_MAX: there is no limit, it does not depend on it. */
uint64_t tmk_fit_largest(const struct tmk_fit *f, uint32_t p, uint32_t c, uint64_t capacity);
/* The same by the low bound: what is larger than this does not fit. */
uint64_t tmk_fit_largest_possible(const struct tmk_fit *f, uint32_t p, uint32_t c,
                                  uint64_t capacity);

#endif
