/* SPDX-License-Identifier: MIT */
/* record/python/pystack.h - the stack of the calling thread as an id, defined in the trace on first
 * use.
 *
 * A thread with Python frames has those. One of autograd's device threads, which run backward
 * without a Python frame, has the stack of the thread that last called backward(). Any other thread
 * has one frame with its name. */
#ifndef TMK_RECORD_PYSTACK_H
#define TMK_RECORD_PYSTACK_H

#include "record/core/lane.h"
#include "record/core/recorder.h"
#include "record/python/pyframe_hot.h"
#include "record/python/pyknown.h"

/* The stack's id; 0: there is no interpreter in this process, or no room. */
uint32_t tmk_pystack_id(struct tmk_lane *lane);

/* True when stacks consist of Python frames and can be read: then tmk_pystack_usual_id() is enough.
 * Stays true in a recording. */
static inline bool tmk_pystack_is_usual(void)
{
    const struct tmk_settings *how = &tmk_recorder.settings;
    return !how->no_stacks && !how->native && tmk_pyframe_is_ready();
}

static inline struct tmk_pyknown tmk_pystack_known(struct tmk_lane *lane)
{
    const struct tmk_pyanchor *anchor = lane->anchor;
    __asm__("" : "+r"(anchor)); /* it is read once */
    tmk_pyknown_function *find =
        atomic_load_explicit(&tmk_pyframe_hot.find[anchor != NULL], memory_order_relaxed);
    return find(lane, anchor);
}

uint32_t tmk_pystack_unknown(struct tmk_lane *lane, uint64_t hash);

/* Return the stack of the last caller of backward(), on one of autograd's threads. 0: the thread
 * runs Python itself, or none is known. */
static inline uint32_t tmk_pystack_of_backward(const struct tmk_lane *lane)
{
    uint64_t last = atomic_load_explicit(&tmk_pyframe_hot.worker.backward, memory_order_acquire);
    bool is_good = last >> 32 == lane->generation && tmk_pyframe_is_idle();
    return is_good ? (uint32_t)last : 0;
}

static inline uint32_t tmk_pystack_usual_id(struct tmk_lane *lane)
{
    struct tmk_pyknown known = tmk_pystack_known(lane);
    return __builtin_expect(known.stack != 0, 1) ? (uint32_t)known.stack
                                                 : tmk_pystack_unknown(lane, known.hash);
}

/* The stack's id with C and C++ frames below Python's, whatever the settings: callers of the driver
 * are mostly not Python. */
uint32_t tmk_pystack_native_id(struct tmk_lane *lane);

/* Note the calling thread's stack for autograd's threads, because it begins a backward pass. */
void tmk_pystack_note_backward(struct tmk_lane *lane);

#endif
