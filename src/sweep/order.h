/* SPDX-License-Identifier: MIT */
/* sweep/order.h - the order in which a sweep tries its cells, chosen to learn early how memory
 * grows.
 *
 *   1. The smallest configuration: if that fails, nothing else need be tried to know.
 *   2. The corners of the grid, the smaller ones first: each parameter at its largest with the
 *      others at their smallest comes right behind the first, and says what each costs.
 *   3. What lies between, the middles before the quarters, the smaller ones first.
 *   4. The largest configuration last: it is the likeliest to run out and to take longest, and by
 *      then the fit knows whether it is worth trying.
 *
 * Numeric values are ordered by number, words in the order given. All steps are done for the first
 * repeat, then for the second, and so on, so that knowledge of the whole grid improves evenly.
 *
 *       batch                       for two parameters of three values each
 *         3 | 2  7  9
 *         2 | 4  6  8
 *         1 | 1  5  3
 *           +--------- seq */
#ifndef TMK_SWEEP_ORDER_H
#define TMK_SWEEP_ORDER_H

#include "sweep/results.h"

/* Write the numbers of all cells but the excluded ones, in order, to `ret`, which has room for
 * r->n_cells; *ret_n: how many. 0 or TMK_ENOMEM. */
int tmk_order_cells(const struct tmk_results *r, uint32_t *ret, uint32_t *ret_n);

/* The distance of two configurations: from 0, the same, to the number of parameters. */
double tmk_order_distance(const struct tmk_results *r, const struct tmk_cell *a,
                          const struct tmk_cell *b);

#endif
