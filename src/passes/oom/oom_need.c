/* SPDX-License-Identifier: MIT */
/* passes/oom/oom_need.c - see oom_need.h. */
#include "passes/oom/oom_need.h"

#include "base/error.h"
#include "kit/amount.h"
#include "kit/textmap.h"
#include "model/owners.h"
#include "passes/oom/oom_scene.h"
#include "tidemark/tidemark.h"
#include "trace/defs.h"
#include "trace/state.h"

/* A forward that got less far than this says nothing of the rest. */
enum { MIN_DONE = 2, MIN_PART = 5 };

/* Backward begins with all activations and adds the gradients of a layer's output and input. */
enum { BACKWARD_BLOCKS = 2 };

/* The first step may make the optimizer's state at its end, so its peak is not the usual one. */
enum { MIN_STEPS_SEEN = 2 };

/* List the modules that have parameters on the device. */
static int parameter_modules(const struct tmk_process *p, uint16_t device, struct tmk_textmap *ret)
{
    for (uint32_t i = 0; i < tmk_parameters_n(p); i++) {
        const struct tmk_parameter *parameter = tmk_parameter_get(p, i);
        const char *module = tmk_parameter_module(p, i);
        uint32_t number;
        if (module && parameter->device == device && tmk_textmap_put(ret, module, &number) < 0)
            return TMK_ENOMEM;
    }
    return 0;
}

/* Find how far a forward had come: which of the modules that have parameters had been entered and
 * left. What the others (ReLU, Dropout) have left counts with them. */
static int find_progress(const struct tmk_process *p, const struct tmk_scene *scene,
                         struct tmk_need *need)
{
    struct tmk_textmap modules = {0};
    uint32_t number;
    int rc = parameter_modules(p, scene->device, &modules);
    for (uint32_t i = 0; i < scene->n_entered && rc == 0; i++)
        if (tmk_textmap_find(&modules, scene->entered[i], &number))
            need->n_done++;
    need->n_all = (uint32_t)modules.n;
    tmk_textmap_fini(&modules);
    return rc;
}

int tmk_need_estimate(const struct tmk_process *p, const struct tmk_scene *scene,
                      const struct tmk_inquiry *inquiry, struct tmk_need *ret_need)
{
    const uint64_t *of = scene->category_bytes;
    uint64_t activations = of[TIDEMARK_ACTIVATION];
    uint64_t scaling = activations + of[TIDEMARK_INPUT] + of[TIDEMARK_TEMPORARY] +
                       of[TIDEMARK_AUTOGRAD_DETAIL] + of[TIDEMARK_KV_CACHE] +
                       tmk_scene_lacking(scene);
    struct tmk_need need = {.bytes = scene->allocated_bytes + tmk_scene_lacking(scene),
                            .activation_bytes = activations,
                            .scaling_bytes = scaling};
    need.has_parts = scene->has_blocks && of[TIDEMARK_UNKNOWN] < scene->allocated_bytes / 2 &&
                     activations > 0 && need.bytes >= scaling;
    bool is_above = inquiry->n_steps == 0 || need.bytes / 5 > inquiry->most_bytes / 4;
    if (need.has_parts && scene->stage_kind == TMK_STAGE_FORWARD && is_above) {
        int rc = find_progress(p, scene, &need);
        if (rc < 0)
            return rc;
    }
    if (need.n_done >= MIN_DONE && need.n_done < need.n_all &&
        need.n_done >= need.n_all / MIN_PART) {
        double part = (double)need.n_all / need.n_done - 1;
        uint64_t more = tmk_size_whole((double)activations * part);
        uint64_t gradients = BACKWARD_BLOCKS * scene->largest_activation_bytes;
        need.is_estimate = true;
        need.activation_bytes += more;
        need.scaling_bytes += more + gradients;
        need.bytes += more + gradients;
    }
    if (need.bytes < inquiry->most_bytes)
        need.bytes = inquiry->most_bytes;
    need.is_whole_step_known =
        inquiry->n_steps >= MIN_STEPS_SEEN && need.bytes / 5 <= inquiry->most_bytes / 4;
    *ret_need = need;
    return 0;
}
