/* SPDX-License-Identifier: MIT */
/* passes/diff/diff_steps.h - the peaks of two runs' steps, side by side.
 *
 * Steps are the same when they have the same number. A run settles at the median of the peaks of
 * its finished steps, leaving out the first tenth (at least one), in which caches fill and
 * optimizers make their state. Two runs part at the first step at which their peaks differ by
 * more than a hundredth of the larger one. */
#ifndef TMK_PASSES_DIFF_DIFF_STEPS_H
#define TMK_PASSES_DIFF_DIFF_STEPS_H

#include "model/run.h"

struct tmk_diff_step {
    int64_t step;
    bool has[2];
    uint64_t peak_bytes[2];
};

struct tmk_diff_steps;

/* The steps of two processes, on one device each. Returns 0 or TMK_ENOMEM. */
int tmk_diff_steps_open(const struct tmk_process *const processes[2], const uint16_t devices[2],
                        struct tmk_diff_steps **ret_steps);
struct tmk_diff_steps *tmk_diff_steps_close(struct tmk_diff_steps *s);

/* The steps that either run has, by number. */
uint64_t tmk_diff_steps_n(const struct tmk_diff_steps *s);
const struct tmk_diff_step *tmk_diff_steps_get(const struct tmk_diff_steps *s, uint64_t i);
/* The bytes that a side settles at; false when fewer than two steps are left to tell. */
bool tmk_diff_steps_settled(const struct tmk_diff_steps *s, unsigned side, uint64_t *ret_bytes);
/* The first step that both have and at which their peaks part; false: none. */
bool tmk_diff_steps_apart(const struct tmk_diff_steps *s, int64_t *ret_step);
/* Choose which steps to show when there is room for `n_shown` (at least 4): the first and last
 * ones, the one where they part, and those with the largest change; ascending. Returns how many. */
uint64_t tmk_diff_steps_pick(const struct tmk_diff_steps *s, uint64_t n_shown, uint64_t *ret);

#endif
