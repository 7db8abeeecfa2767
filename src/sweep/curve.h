/* SPDX-License-Identifier: MIT */
/* sweep/curve.h - find the few terms, of many candidates, with a sum that fits a series of figures.
 *
 * Terms are added, removed and exchanged one at a time as long as that reduces the error of
 * left-out cells by more than the terms cost (Schwarz' criterion, with leave-one-out in place of
 * the fit's own error). Leaving a cell out needs no new fit: its residual would be r / (1 -
 * leverage), as long as no coefficient changes its sign.
 *
 *     struct tmk_curve c;
 *     if (tmk_curve_fit(&problem, arena, &c) != 0) ... TMK_ENOMEM
 *     tmk_curve_value(&c, candidates_at_x) */
#ifndef TMK_SWEEP_CURVE_H
#define TMK_SWEEP_CURVE_H

#include "kit/arena.h"
#include "sweep/nnls.h"

/* Rows are cells, columns are candidates. Both sides of a row are already multiplied by its
 * weight. */
struct tmk_curve_problem {
    const double *a;    /* m * n, by columns */
    const double *b;    /* m */
    const double *cost; /* n: of each candidate */
    uint32_t m, n;
};

struct tmk_curve {
    uint32_t m;
    uint32_t chosen[TMK_NNLS_MOST]; /* candidates, with coefficients above 0 */
    double x[TMK_NNLS_MOST];
    uint32_t n_chosen;
    struct tmk_nnls fit; /* columns as in `chosen` */
    double *rest;        /* m: b minus the estimate from the others, each row left out in turn */
    double score;        /* smaller is better */
};

int tmk_curve_fit(const struct tmk_curve_problem *p, struct tmk_arena *arena,
                  struct tmk_curve *ret);
/* The curve's value for a row of candidates, without a weight. */
double tmk_curve_value(const struct tmk_curve *c, const double *row);
/* The weight of each of the m rows in that value. */
void tmk_curve_weights(const struct tmk_curve *c, const double *row, double *ret);

#endif
