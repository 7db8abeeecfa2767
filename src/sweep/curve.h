/* SPDX-License-Identifier: MIT */
/* sweep/curve.h - the few terms, of many candidates, that a series of figures is the sum of.
 *
 * Terms are taken in, put out and exchanged one at a time as long as that makes the error of cells
 * that were left out smaller by more than the terms cost (Schwarz' criterion, with leave-one-out in
 * place of the fit's own error). Leaving a cell out needs no new fit: r / (1 - leverage) is what it
 * would say, as long as no coefficient changes its sign.
 *
 *     struct tmk_curve c;
 *     if (tmk_curve_fit(&problem, arena, &c) != 0) ... TMK_ENOMEM
 *     tmk_curve_value(&c, candidates_at_x) */
#ifndef TMK_SWEEP_CURVE_H
#define TMK_SWEEP_CURVE_H

#include "kit/arena.h"
#include "sweep/nnls.h"

/* Rows are cells, columns candidates; both sides of a row are times its weight already. */
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
    double *rest;        /* m: b - what the others say, each row left out in turn */
    double score;        /* to be small */
};

int tmk_curve_fit(const struct tmk_curve_problem *p, struct tmk_arena *arena,
                  struct tmk_curve *ret);
/* What it says of a row of candidates, without a weight. */
double tmk_curve_value(const struct tmk_curve *c, const double *row);
/* The weight of each of the m rows in that. */
void tmk_curve_weights(const struct tmk_curve *c, const double *row, double *ret);

#endif
