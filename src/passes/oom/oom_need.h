/* SPDX-License-Identifier: MIT */
/* passes/oom/oom_need.h - how much the step that ran out would have needed, and how much of that
 * grows with the batch.
 *
 * What was allocated plus what was asked for is the least. Steps that ended before say more, if
 * they needed more. A forward that had come only so far is taken to go on as it began: of the
 * modules with parameters, those that have left an activation are done. That is an estimate, and
 * marked as one.
 *
 * With the batch grow activations, inputs, temporaries and autograd's own. Where what blocks are
 * for is not known of most bytes (no categories recorded), nothing is said of that. */
#ifndef TMK_PASSES_OOM_OOM_NEED_H
#define TMK_PASSES_OOM_OOM_NEED_H

#include "passes/oom/oom_causes.h"

struct tmk_need {
    uint64_t bytes;
    bool is_estimate;       /* of a forward that had not ended */
    uint32_t n_done, n_all; /* modules, when it is one */
    bool has_parts;         /* else the next two are not known */
    uint64_t scaling_bytes; /* of it, with the batch */
    uint64_t activation_bytes;
};

/* Returns 0 or TMK_ENOMEM. */
int tmk_need_estimate(const struct tmk_process *p, const struct tmk_scene *scene,
                      const struct tmk_inquiry *inquiry, struct tmk_need *ret_need);

#endif
