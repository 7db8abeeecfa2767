/* SPDX-License-Identifier: MIT */
/* record/training/bridge.h - what torch's Python side knows: modules, backward, optimizers,
 * tensors.
 *
 * Armed when torch has been imported and makes its first blocks. Two places are patched, neither of
 * which Python code can see, so that nothing which compares functions (torch.compile, for one)
 * finds anything new: the vectorcall pointer of the function object torch.nn.Module.__call__, which
 * is each call of a module; and the C function in the method definition of the engine's
 * run_backward. The step() of optimizer classes and a few more are wrapped in Python (bridge.py),
 * and can be seen.
 * What begins and ends there goes to training_context.h; which tensor is what goes into the trace
 * as tags.
 *
 * Names come from bridge.py, once for each module; the calls themselves run C only. */
#ifndef TMK_RECORD_BRIDGE_H
#define TMK_RECORD_BRIDGE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "record/core/lane.h"
#include "record/python/python.h"

/* Torch makes a block, and tmk_short.settled is not this recording: see to it that the bridge
 * is armed; or begin a step that is due. Under torch's locks; does not wait. */
void tmk_bridge_want(struct tmk_lane *lane);

/* Arm it in a forked child at the first call of a module, of backward or of an optimizer. The child
 * has its parent's hooks; most children (data loader workers) never get there, and arming runs
 * Python, which makes them copy pages that they share with their parent. With the interpreter's
 * lock. True: it is armed now. */
bool tmk_bridge_wake(void);

/* Backward comes to a node of torch's, on any thread. */
void tmk_bridge_note_node(const void *node);
/* One of autograd's threads, whose lane is entered, works for a backward: it makes its first block
 * in it, or is refused it, or calls Python. */
void tmk_bridge_note_worker(struct tmk_lane *lane);
/* It is none of autograd's, or that is on record. */
static inline bool tmk_bridge_knows_worker(const struct tmk_lane *lane)
{
    return !lane->is_autograd ||
           lane->quiet == atomic_load_explicit(&tmk_short.quiet, memory_order_relaxed);
}

static inline void tmk_bridge_see_worker(struct tmk_lane *lane)
{
    if (__builtin_expect(!tmk_bridge_knows_worker(lane), 0))
        tmk_bridge_note_worker(lane);
}

/* For the Python package: a module or an optimizer, with the interpreter's lock. */
__attribute__((visibility("default"))) int tidemark_watch(struct tmk_object *thing);

/* The recording has ended: calls go to torch directly again. Any thread, without Python's lock. */
void tmk_bridge_end(void);
/* The same and back again, for measurements. */
void tmk_bridge_switch(bool in);

/* ---- between bridge.c, torch_calls.c and tensor_tags.c; all with the interpreter's lock ---- */

struct tmk_bridge {
    bool modules, categories;
    const struct tmk_python *py;
    struct tmk_object *names; /* bridge.py's namespace */
    struct tmk_object *learn, *called, *refresh, *updated, *wrap_steps, *only_devices;
    struct tmk_object *tensor_class; /* torch.Tensor */
};
extern struct tmk_bridge tmk_bridge;

/* Nothing that it sees is to be recorded. */
static inline bool tmk_bridge_is_off(void)
{
    const struct tmk_control *c = &tmk_control_page.control;
    uint32_t armed = atomic_load_explicit(&c->bridge, memory_order_relaxed);
    return armed != atomic_load_explicit(&c->generation, memory_order_relaxed) || armed == 0;
}

extern const char tmk_bridge_source[]; /* bridge.py */

/* Call one of bridge.py's functions. NULL arguments end the list. Mistakes that it makes are
 * dropped; false when something else was raised in it, by a ^C or another signal's handler: that is
 * the program's, and stays raised. */
bool tmk_bridge_call(struct tmk_object *function, struct tmk_object *a, struct tmk_object *b);

/* False while asking tensors would be seen: torch.jit.trace is recording, or a TorchFunctionMode is
 * on. */
bool tmk_bridge_is_calm(void);

/* Patch the calls, or undo it. The objects are arm()'s answer. False, and why, when not. */
bool tmk_calls_patch(struct tmk_object *function, struct tmk_object *method, const char **ret_why);
void tmk_calls_switch(bool in);
/* Whether they are patched now. */
bool tmk_calls_are_in(void);
/* begin(optimizer), end(optimizer, token, returned), skip(), hush(on): for bridge.py. */
struct tmk_object *tmk_calls_begin_update(struct tmk_object *self, struct tmk_object *arguments);
struct tmk_object *tmk_calls_end_update(struct tmk_object *self, struct tmk_object *arguments);
struct tmk_object *tmk_calls_skip_update(struct tmk_object *self, struct tmk_object *arguments);
struct tmk_object *tmk_calls_hush(struct tmk_object *self, struct tmk_object *arguments);

/* gradients(list): the parameters whose gradients are to be tagged, one module's behind each other:
 * (weak reference to the module, key, name, device). */
struct tmk_object *tmk_tags_gradients(struct tmk_object *self, struct tmk_object *arguments);
/* Tag the gradients that there are. All backwards were run by the calling thread. */
void tmk_tags_note_gradients(void);
/* A module is gone. */
void tmk_tags_forget(void);
/* Tag the tensors among a root's arguments. */
void tmk_tags_note_inputs(struct tmk_object *const *values, size_t n, struct tmk_object *keywords);
/* workspaces(): tag those of cuBLAS. */
struct tmk_object *tmk_workspaces_note(struct tmk_object *self, struct tmk_object *arguments);
void tmk_tags_reset(void);
void tmk_tags_init(void);

#endif
