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
 *     struct tmk_estimate e = tmk_fit_at(f, numbers);
 *     ... e.bytes, between e.low and e.high ... */
#ifndef TMK_SWEEP_FIT_H
#define TMK_SWEEP_FIT_H

#include "sweep/results.h"

enum tmk_fit_of {
    TMK_FIT_ALLOCATED, /* peak_allocated, by category */
    TMK_FIT_RESERVED,  /* peak_reserved as a whole: what a card must have */
};

struct tmk_estimate {
    bool known; /* else there is nothing to go by, and the rest is 0 */
    double bytes;
    double low, high; /* nine times in ten, if the model is right */
};

/* A term of the model, for people: {"activation", "batch*seq^2", 12.5, 0.3}. */
struct tmk_fit_term {
    const char *category;
    const char *text; /* "1": the constant */
    double coefficient;
    double error; /* standard error of the coefficient */
};

struct tmk_fit;

/* 0; TMK_ENOMEM; TMK_EINVAL with the reason where too few cells are done. */
int tmk_fit_make(const struct tmk_results *r, enum tmk_fit_of of, struct tmk_fit **ret,
                 struct tmk_error *err);
struct tmk_fit *tmk_fit_close(struct tmk_fit *f);

/* What cell `c` of the results would need, measured or not. */
struct tmk_estimate tmk_fit_cell(const struct tmk_fit *f, uint32_t c);
/* The same for any values: `numbers` of each numeric parameter, `choice` for the others. */
struct tmk_estimate tmk_fit_at(const struct tmk_fit *f, const double *numbers,
                               const uint32_t *choice);
/* |estimate from the others - measured| / measured: the middle one and the worst of all cells.
 * NaN: too few cells to leave one out. */
double tmk_fit_left_out_median(const struct tmk_fit *f);
double tmk_fit_left_out_worst(const struct tmk_fit *f);
uint32_t tmk_fit_n_terms(const struct tmk_fit *f);
const struct tmk_fit_term *tmk_fit_term(const struct tmk_fit *f, uint32_t i);

/* The largest whole value of parameter `p` that fits into `capacity`, the others as in cell `c`:
 * by the estimate's high bound, so that it does fit. 0: none does; UINT64_MAX: it does not depend
 * on it. */
uint64_t tmk_fit_largest(const struct tmk_fit *f, uint32_t p, uint32_t c, uint64_t capacity);

#endif
