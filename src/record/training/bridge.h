/* SPDX-License-Identifier: MIT */
/* record/training/bridge.h - what torch's Python side knows: modules, backward, optimizers,
 * tensors.
 *
 * The bridge is armed when torch has been imported and makes its first blocks. Then C sees calls of
 * modules and of backward (torch_calls.h), and Python wraps the step() of optimizer classes and a
 * few more functions (bridge.py, bridge_python.h). What begins and ends there goes to
 * training_context.h; which tensor is what goes into the trace as tags (tensor_tags.h).
 *
 * Names come from bridge.py, once for each module. The calls themselves run C only. */
#ifndef TMK_RECORD_BRIDGE_H
#define TMK_RECORD_BRIDGE_H

#include <stdbool.h>

#include "record/core/lane.h"

struct tmk_object;

/* Called for a block when tmk_fast_path.settled is not this recording: arm the bridge if it can be
 * armed, or begin a step that is due. Runs under torch's locks and does not wait. */
void tmk_bridge_want(struct tmk_lane *lane);

/* Called by the Python package, with the interpreter's lock: learn a module or an optimizer. 1: it
 * is known now. */
__attribute__((visibility("default"))) int tidemark_watch(struct tmk_object *thing);

/* End it, because the recording has ended: calls go to torch directly again. Any thread, without
 * the interpreter's lock. */
void tmk_bridge_end(void);
/* Take its hooks out or put them in again, for measurements. */
void tmk_bridge_switch(bool in);

#endif
