/* SPDX-License-Identifier: MIT */
/* sweep/order.h - in which order a sweep tries its cells: to learn early how memory grows.
 *
 *   1. The smallest configuration: if that fails, nothing else need be tried to know.
 *   2. The corners of the grid, the smaller ones first: each parameter at its largest with the
 *      others at their smallest comes right behind the first, and says what each costs.
 *   3. What lies between, the middles before the quarters, the smaller ones first.
 *   4. The largest configuration last: it is the likeliest to run out and to take longest, and by
 *      then the fit knows whether it is worth trying.
 *
 * Small and large go by the values' numbers, of words by the order given. All this is done for the
 * first repeat, then for the second, and so on: what is known of the whole grid gets better evenly.
 *
 *       batch                       for two parameters of three values each
 *         3 | 2  7  9
 *         2 | 4  6  8
 *         1 | 1  5  3
 *           +--------- seq */
#ifndef TMK_SWEEP_ORDER_H
#define TMK_SWEEP_ORDER_H

#include "sweep/results.h"

/* The numbers of all cells but the excluded ones, into `ret` of r->n_cells; *ret_n: how many. 0 or
 * TMK_ENOMEM. */
int tmk_order_cells(const struct tmk_results *r, uint32_t *ret, uint32_t *ret_n);

/* How far apart two configurations are: 0, the same, to the number of parameters. */
double tmk_order_distance(const struct tmk_results *r, const struct tmk_cell *a,
                          const struct tmk_cell *b);

#endif
