/* SPDX-License-Identifier: MIT */
/* sweep/nnls.h - least squares with coefficients that cannot be negative (Lawson and Hanson's).
 *
 *     struct tmk_nnls s = {.q = room};
 *     tmk_nnls_solve(&s, a, m, n, b);
 *     ... s.x[0 .. n) ...
 *
 * For small dense problems. Columns may have any scale and may depend on each other: of those that
 * do, one gets the coefficient and the others 0. The columns that are not 0 are left factored, for
 * leverages (how much a row decides about itself) and errors of what is said of other rows. */
#ifndef TMK_SWEEP_NNLS_H
#define TMK_SWEEP_NNLS_H

#include <stdint.h>

enum { TMK_NNLS_MOST = 16 }; /* columns */

struct tmk_nnls {
    double x[TMK_NNLS_MOST];
    uint32_t used[TMK_NNLS_MOST]; /* the columns whose x is above 0, as factored */
    uint32_t n_used;
    double *q;                              /* m * n, the caller's: n_used orthonormal columns */
    double r[TMK_NNLS_MOST][TMK_NNLS_MOST]; /* upper triangle: used columns = q r */
};

/* Minimise |a x - b|, x >= 0. `a` has m rows and n columns (at most TMK_NNLS_MOST), by columns. */
void tmk_nnls_solve(struct tmk_nnls *s, const double *a, uint32_t m, uint32_t n, const double *b);

double tmk_dot(const double *a, const double *b, uint32_t m);

/* How much of its own estimate row i is: 0 to 1. */
double tmk_nnls_leverage(const struct tmk_nnls *s, uint32_t m, uint32_t i);
/* Which weight each of the m rows has in what is said of a row with columns `row[0 .. n)`. */
void tmk_nnls_weights(const struct tmk_nnls *s, uint32_t m, const double *row, double *ret);
/* (A'A)^-1 of the used columns, its i-th diagonal: times the variance, that of a coefficient. */
double tmk_nnls_spread(const struct tmk_nnls *s, uint32_t i);

#endif
