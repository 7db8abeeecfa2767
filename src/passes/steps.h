/* SPDX-License-Identifier: MIT */
/* passes/steps.h - the per-step history of a process. It needs no sweep: every trace has it in
 * full, whatever --max-size gave up. The exact peak of the run is its largest row. */
#ifndef TMK_PASSES_STEPS_H
#define TMK_PASSES_STEPS_H

#include "model/run.h"

/* The row with the largest peak, on `device` or, with any_device, on all; NULL when there is none.
 */
const struct tmk_step_row *tmk_steps_peak(const struct tmk_process *p, bool any_device,
                                          uint16_t device);

/* The last row of a device; in a trace that is read live its end is now. NULL: it has none. */
const struct tmk_step_row *tmk_steps_last(const struct tmk_process *p, uint16_t device);

enum tmk_steps_trend {
    TMK_STEPS_TREND_TOO_SHORT, /* fewer than TMK_STEPS_TREND_MIN_STEPS finished steps */
    TMK_STEPS_TREND_STEADY,
    TMK_STEPS_TREND_GROWING,
    TMK_STEPS_TREND_SHRINKING,
    TMK_STEPS_TREND_VARYING,
};

enum { TMK_STEPS_TREND_MIN_STEPS = 10 };

struct tmk_steps_digest {
    uint64_t n_steps;  /* rows with a step number, including the open one */
    uint64_t n_before; /* allocations before the first step */
    uint64_t mean_ns;  /* of finished steps; 0: none */
    enum tmk_steps_trend trend;
    double bytes_per_step; /* GROWING and SHRINKING: change of the memory kept after a step */
};

struct tmk_steps;

/* The rows of one device. Returns 0 or TMK_ENOMEM. */
int tmk_steps_open(const struct tmk_process *p, uint16_t device, struct tmk_steps **ret_steps);
struct tmk_steps *tmk_steps_close(struct tmk_steps *s);

/* Rows come in order of time; only those with a step number. */
uint64_t tmk_steps_n(const struct tmk_steps *s);
const struct tmk_step_row *tmk_steps_get(const struct tmk_steps *s, uint64_t i);
struct tmk_steps_digest tmk_steps_digest(const struct tmk_steps *s);

/* Choose which rows to show when there is room for `n_shown`: the first ones, the last ones, and
 * between them those with the largest peaks; ascending. Returns how many were written to `ret`. */
uint64_t tmk_steps_pick(const struct tmk_steps *s, uint64_t n_shown, uint64_t *ret);

#endif
