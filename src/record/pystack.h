/* SPDX-License-Identifier: MIT */
/* record/pystack.h - the stack of the calling thread as an id, defined in the trace on first use.
 *
 * A thread with Python frames has those. One of autograd's device threads, which run backward
 * without a Python frame, has the stack of the thread that last called backward(). Any other has a
 * frame that says its name. */
#ifndef TMK_RECORD_PYSTACK_H
#define TMK_RECORD_PYSTACK_H

#include "record/lane.h"

/* 0 when there is none: no interpreter in this process, or no room. */
uint32_t tmk_pystack_id(struct tmk_lane *lane);

/* The same with C and C++ frames below Python's, whatever was asked for: who calls the driver is
 * mostly not Python. */
uint32_t tmk_pystack_native_id(struct tmk_lane *lane);

/* The calling thread begins a backward pass: its stack becomes that of autograd's threads. */
void tmk_pystack_note_backward(struct tmk_lane *lane);

#endif
