/* SPDX-License-Identifier: MIT */
/* passes/oom/oom_need.h - how much the step with the OOM would have needed, and how much of that
 * grows with the batch.
 *
 * Allocated plus requested bytes are the least that it needs. Earlier steps say more if they
 * needed more. A forward that was interrupted is taken to go on as it began: the modules with
 * parameters that were entered and left are done, and backward adds the gradients of the largest
 * activation and of its input. That is an estimate and marked as one. What the
 * rest of a step needs is known only where steps like it came to their end before.
 *
 * Activations, inputs, temporaries and autograd's own memory grow with the batch. If the
 * category of most bytes is not known (none were recorded), nothing is said about that. */
#ifndef TMK_PASSES_OOM_OOM_NEED_H
#define TMK_PASSES_OOM_OOM_NEED_H

#include "passes/oom/oom_causes.h"

struct tmk_need {
    uint64_t bytes;
    bool is_estimate;         /* the forward was interrupted */
    uint32_t n_done, n_all;   /* modules, if is_estimate */
    bool is_whole_step_known; /* at least two steps before needed about as much */
    bool has_parts;           /* else the next two are not known */
    uint64_t scaling_bytes;   /* the part that grows with the batch */
    uint64_t activation_bytes;
};

/* Returns 0 or TMK_ENOMEM. */
int tmk_need_estimate(const struct tmk_process *p, const struct tmk_scene *scene,
                      const struct tmk_inquiry *inquiry, struct tmk_need *ret_need);

#endif
