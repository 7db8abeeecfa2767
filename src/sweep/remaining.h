/* SPDX-License-Identifier: MIT */
/* sweep/remaining.h - how long the rest of a sweep will take, from what was measured so far.
 *
 * A configuration is thought to take as long as those near it in the grid did, the nearer the more;
 * one that ran out or failed took as long as it took. */
#ifndef TMK_SWEEP_REMAINING_H
#define TMK_SWEEP_REMAINING_H

#include "sweep/results.h"

/* Seconds that the pending ones of the `n` cells in `order` take, `n_at_once` at a time; negative:
 * nothing was measured yet. */
double tmk_remaining_seconds(const struct tmk_results *r, const uint32_t *order, uint32_t n,
                             unsigned n_at_once);

#endif
