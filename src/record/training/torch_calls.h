/* SPDX-License-Identifier: MIT */
/* record/training/torch_calls.h - calls of torch's modules, of backward and of optimizers.
 *
 * Two places are patched, neither of which Python code can see, so that nothing which compares
 * functions (torch.compile, for one) finds anything new: the vectorcall pointer of the function
 * object torch.nn.Module.__call__, which is each call of a module; and the C function in the method
 * definition of the engine's run_backward. Optimizers' steps are told by wrappers in bridge.py. */
#ifndef TMK_RECORD_TORCH_CALLS_H
#define TMK_RECORD_TORCH_CALLS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "record/core/lane.h"
#include "record/core/recorder.h"

struct tmk_object;

/* Backward comes to a node of torch's, on any thread. */
void tmk_torch_calls_note_node(const void *node);
/* One of autograd's threads, whose lane is entered, works for a backward: it makes its first block
 * in it, or is refused it, or calls Python. */
void tmk_torch_calls_note_worker(struct tmk_lane *lane);
/* It is none of autograd's, or that is on record. */
static inline bool tmk_torch_calls_knows_worker(const struct tmk_lane *lane)
{
    return !lane->is_autograd ||
           lane->quiet == atomic_load_explicit(&tmk_fast_path.quiet, memory_order_relaxed);
}

static inline void tmk_torch_calls_see_worker(struct tmk_lane *lane)
{
    if (__builtin_expect(!tmk_torch_calls_knows_worker(lane), 0))
        tmk_torch_calls_note_worker(lane);
}

/* ---- with the interpreter's lock ---- */

/* False while asking tensors would be seen: torch.jit.trace is recording, or a TorchFunctionMode is
 * on. */
bool tmk_torch_calls_is_calm(void);

/* Patch the calls, or undo it. The objects are arm()'s answer. False, and why, when not. */
bool tmk_torch_calls_patch(struct tmk_object *function, struct tmk_object *method,
                           bool (*wake)(void), const char **ret_why);
void tmk_torch_calls_switch(bool in);
/* Whether they are patched now. */
bool tmk_torch_calls_are_in(void);
/* begin(optimizer), end(optimizer, token, returned), skip(), hush(on): for bridge.py. */
struct tmk_object *tmk_torch_calls_begin_update(struct tmk_object *self,
                                                struct tmk_object *arguments);
struct tmk_object *tmk_torch_calls_end_update(struct tmk_object *self,
                                              struct tmk_object *arguments);
struct tmk_object *tmk_torch_calls_skip_update(struct tmk_object *self,
                                               struct tmk_object *arguments);
struct tmk_object *tmk_torch_calls_hush(struct tmk_object *self, struct tmk_object *arguments);

#endif
