/* SPDX-License-Identifier: MIT */
/* sweep/fit_internal.h - private types and functions of a fit, for the files that make it.
 *
 *     fit_rows.c     puts cells into groups, one for each combination of the parameters that are no
 *                    numbers, and makes each group's rows and figures
 *     fit_group.c    solves a group: chooses terms, leaves rows out, estimates points
 *     fit_terms.c    writes the terms as texts
 *     fit.c          makes a fit, and has its answers
 *
 * Rows of a group are configurations: repeats are combined (their mean, with their number as
 * weight). There are several ways to estimate the peak, each with parts that get a curve each. */
#ifndef TMK_SWEEP_FIT_INTERNAL_H
#define TMK_SWEEP_FIT_INTERNAL_H

#include "kit/arena.h"
#include "sweep/curve.h"
#include "sweep/fit.h"
#include "sweep/terms.h"

enum { TMK_FIT_WAYS = 3 };

struct tmk_fit_part {
    const char *name;
    double *y; /* bytes of each row */
    struct tmk_curve curve;
};

struct tmk_fit_way {
    const char *name;
    bool is_largest; /* the estimate is the largest of its parts, else their sum */
    struct tmk_fit_part *parts;
    uint32_t n_parts;
    double *left_out; /* of each row: relative error without it; NaN: it was not left out */
    double mean;      /* mean of those errors */
};

struct tmk_fit_group {
    uint32_t
        first_cell;     /* the first cell of the group: it has the values of the other parameters */
    uint32_t n_numbers; /* parameters that are numbers */
    uint32_t m;         /* rows */
    double *x;          /* m * n_numbers */
    double from[TMK_TERMS_PARAMS], to[TMK_TERMS_PARAMS]; /* least and most of each number */
    uint32_t *row_cell;                                  /* a cell of each row */
    double *n_repeats, *total;
    struct tmk_terms terms;
    double cost[TMK_TERMS_MOST];
    double *a; /* m * terms, by columns, weighted */
    struct tmk_fit_way ways[TMK_FIT_WAYS];
    uint32_t n_ways;
    struct tmk_fit_way *best;
    double spread;    /* relative error that nine of ten left-out rows stay within */
    uint32_t off_row; /* a row at the edge that does not follow the others; m: there is none */
};

struct tmk_fit {
    const struct tmk_results *r; /* borrowed */
    enum tmk_fit_of of;
    struct tmk_arena arena;
    uint32_t number_of[TMK_TERMS_PARAMS]; /* parameters that are numbers */
    uint32_t n_numbers;
    bool *is_number;              /* of each parameter */
    struct tmk_fit_group *groups; /* those with enough cells */
    uint32_t n_groups;
    struct tmk_fit_term *terms;
    uint32_t n_terms;
    double *left_out; /* of all groups, in rising order */
    uint32_t n_left_out;
};

/* fit_rows.c. Make the groups and solve them: 0 or TMK_ENOMEM. Groups with too few rows are
 * dropped; *ret_most is the most rows of any group. */
int tmk_fit_make_groups(struct tmk_fit *f, uint32_t *ret_most);
/* Whether two choices are equal in all parameters that are words; or, with `numbers`, in all that
 * are numbers. */
bool tmk_fit_is_alike(const struct tmk_fit *f, const uint32_t *a, const uint32_t *b, bool numbers);
/* Get the numbers among the values of a choice. */
void tmk_fit_numbers(const struct tmk_fit *f, const uint32_t *choice, double *ret);

/* fit_terms.c. Fill in f->terms: 0 or TMK_ENOMEM. */
int tmk_fit_tell_terms(struct tmk_fit *f);

/* fit_group.c. After rows and figures are filled in: choose terms, leave rows out, choose the way.
 * 0 or TMK_ENOMEM. */
int tmk_fit_group_solve(struct tmk_fit_group *g, struct tmk_arena *arena);
/* Estimate at `numbers`, one for each of n_numbers. Unknown where a parameter differs that did not
 * vary. */
struct tmk_estimate tmk_fit_group_at(const struct tmk_fit_group *g, const double *numbers);
/* Compute the parts of the change by parameter k, as in tmk_fit_effect(). */
void tmk_fit_group_change(const struct tmk_fit_group *g, uint32_t k, const double *from,
                          const double *to, struct tmk_fit_effect *ret);

/* Compare doubles for qsort, the least first. */
int tmk_fit_rising(const void *va, const void *vb);

#endif
