/* SPDX-License-Identifier: MIT */
/* record/training/torch_calls.h - see calls of torch's modules, of backward and of optimizers.
 *
 * Two places are patched. Python code can see neither, so nothing that compares functions (such as
 * torch.compile) finds anything new: the vectorcall pointer of the function object
 * torch.nn.Module.__call__, through which each call of a module goes, and the C function in the
 * method definition of the engine's run_backward. Wrappers in bridge.py tell of optimizers'
 * steps. */
#ifndef TMK_RECORD_TORCH_CALLS_H
#define TMK_RECORD_TORCH_CALLS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "record/core/lane.h"
#include "record/core/recorder.h"

struct tmk_object;

/* Called when backward comes to a node, on any thread. */
void tmk_torch_calls_note_node(const void *node);
/* Called when one of autograd's threads, with its lane entered, works for a backward: it makes its
 * first block in it, runs out of memory, or calls Python. */
void tmk_torch_calls_note_worker(struct tmk_lane *lane);
/* True when the thread is not one of autograd's, or its work for this backward is on record. */
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

/* Called when the process ends, on any thread. */
void tmk_torch_calls_end_process(void);

/* ---- with the interpreter's lock ---- */

/* True when nobody would see us ask tensors. False while torch.jit.trace is recording or a
 * TorchFunctionMode is on. */
bool tmk_torch_calls_is_calm(void);

/* Patch the calls of these two objects, which bridge.py's arm() returns. `wake` is called when a
 * call comes while the bridge is off, and is true when it is on afterwards. False, with the reason,
 * when they cannot be patched. switch() takes the patches out and puts them in again. */
bool tmk_torch_calls_patch(struct tmk_object *function, struct tmk_object *method,
                           bool (*wake)(void), const char **ret_why);
void tmk_torch_calls_switch(bool in);
/* True while they are patched. */
bool tmk_torch_calls_are_in(void);
/* Called by bridge.py: begin(optimizer), end(optimizer, token, returned), skip(), hush(on). */
struct tmk_object *tmk_torch_calls_begin_update(struct tmk_object *self,
                                                struct tmk_object *arguments);
struct tmk_object *tmk_torch_calls_end_update(struct tmk_object *self,
                                              struct tmk_object *arguments);
struct tmk_object *tmk_torch_calls_await_turn(struct tmk_object *self,
                                              struct tmk_object *arguments);
struct tmk_object *tmk_torch_calls_skip_update(struct tmk_object *self,
                                               struct tmk_object *arguments);
struct tmk_object *tmk_torch_calls_hush(struct tmk_object *self, struct tmk_object *arguments);

#endif
