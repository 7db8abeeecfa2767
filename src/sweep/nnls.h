/* SPDX-License-Identifier: MIT */
/* sweep/nnls.h - least squares with coefficients that cannot be negative (Lawson and Hanson's
 * algorithm).
 *
 *     struct tmk_nnls s = {.q = room};
 *     tmk_nnls_solve(&s, a, m, n, b);
 *     ... s.x[0 .. n) ...
 *
 * It is for small dense problems. Columns may have any scale and may depend on each other: of
 * dependent ones, one gets the coefficient and the others get 0. The columns that are not 0 stay
 * factored, for leverages (how much a row decides about itself) and for errors of estimates. */
#ifndef TMK_SWEEP_NNLS_H
#define TMK_SWEEP_NNLS_H

#include <stdint.h>

enum { TMK_NNLS_MOST = 16 }; /* columns */

struct tmk_nnls {
    double x[TMK_NNLS_MOST];
    uint32_t used[TMK_NNLS_MOST]; /* the columns with x above 0, in factored order */
    uint32_t n_used;
    double *q;                              /* m * n, the caller's: n_used orthonormal columns */
    double r[TMK_NNLS_MOST][TMK_NNLS_MOST]; /* upper triangle: used columns = q r */
};

/* Minimise |a x - b|, x >= 0. `a` has m rows and n columns (at most TMK_NNLS_MOST), by columns. */
void tmk_nnls_solve(struct tmk_nnls *s, const double *a, uint32_t m, uint32_t n, const double *b);

double tmk_dot(const double *a, const double *b, uint32_t m);

/* The share of row i in its own estimate: 0 to 1. */
double tmk_nnls_leverage(const struct tmk_nnls *s, uint32_t m, uint32_t i);
/* The weight of each of the m rows in the estimate for a row with columns `row[0 .. n)`. */
void tmk_nnls_weights(const struct tmk_nnls *s, uint32_t m, const double *row, double *ret);
/* The i-th diagonal element of (A'A)^-1 of the used columns. Times the variance of the data, it is
 * the variance of a coefficient. */
double tmk_nnls_spread(const struct tmk_nnls *s, uint32_t i);

#endif
