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

#include <stdbool.h>

#include "record/core/lane.h"

struct tmk_object;

/* Torch makes a block, and tmk_fast_path.settled is not this recording: see to it that the bridge
 * is armed; or begin a step that is due. Under torch's locks; does not wait. */
void tmk_bridge_want(struct tmk_lane *lane);

/* For the Python package: a module or an optimizer, with the interpreter's lock. */
__attribute__((visibility("default"))) int tidemark_watch(struct tmk_object *thing);

/* The recording has ended: calls go to torch directly again. Any thread, without Python's lock. */
void tmk_bridge_end(void);
/* The same and back again, for measurements. */
void tmk_bridge_switch(bool in);

#endif
