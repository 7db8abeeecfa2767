/* SPDX-License-Identifier: MIT */
/* sweep/remaining.h - estimate how long the rest of a sweep takes, from the times measured so far.
 *
 * A configuration is expected to take as long as those near it in the grid did; nearer ones have
 * more weight. Cells that failed count with the time they took. */
#ifndef TMK_SWEEP_REMAINING_H
#define TMK_SWEEP_REMAINING_H

#include "sweep/results.h"

/* Seconds that the pending cells among the `n` in `order` take, with `n_at_once` at a time;
 * negative: nothing was measured yet. */
double tmk_remaining_seconds(const struct tmk_results *r, const uint32_t *order, uint32_t n,
                             unsigned n_at_once);

#endif
