/* SPDX-License-Identifier: MIT */
/* record/python/pyframe_hot.h - the data that each Python stack needs, in two cache lines.
 * pyframe.c fills it in when it has found an interpreter. */
#ifndef TMK_RECORD_PYFRAME_HOT_H
#define TMK_RECORD_PYFRAME_HOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/core/thread_slot.h"

enum { TMK_PYFRAME_MAX = 128 }; /* deeper stacks are cut at the outermost frames, and say so */

struct tmk_lane;
struct tmk_pyknown;
struct tmk_pyanchor;

/* Finds out which stack the calling thread has (pyknown.h); `lane` is the thread's. */
typedef struct tmk_pyknown tmk_pyknown_function(struct tmk_lane *lane,
                                                const struct tmk_pyanchor *anchor);
/* Makes the anchor of a call inside that of another; false when there is none. */
typedef bool tmk_pyknown_entry(struct tmk_pyanchor *ret, const struct tmk_pyanchor *before);

/* The data that stacks of autograd's threads need. Torch has given each of them a Python thread
 * state, but mostly no frame is on it. */
struct tmk_pyframe_worker {
    struct tmk_thread_slot slot; /* of Python's thread state, as in struct tmk_pyframe_hot */
    uint16_t thread_frame;       /* from the layout (pylayout.h), as the next two */
    uint16_t cframe_frame;
    bool indirect;
    /* generation << 32 | stack id of the last call of backward (pystack.c) */
    _Atomic uint64_t backward;
};

/* One cache line for each stack, and a second one for autograd's threads. */
struct tmk_pyframe_hot {
    tmk_pyknown_function
        *_Atomic find[2];        /* the second is for threads with an anchor; NULL: not ready yet */
    struct tmk_thread_slot slot; /* of Python's thread state, if the slot was found */
    const void *main_interpreter;
    _Atomic uint64_t epoch; /* changes when known stacks are forgotten (pyknown.h) */
    tmk_pyknown_entry *_Atomic enter;
    _Alignas(64) struct tmk_pyframe_worker worker;
};
_Static_assert(sizeof(struct tmk_pyframe_hot) <= 128, "two lines");
extern struct tmk_pyframe_hot tmk_pyframe_hot;

/* True when the calling thread runs no Python function; false also when that is not known. */
static inline bool tmk_pyframe_is_idle(void)
{
    const struct tmk_pyframe_worker *w = &tmk_pyframe_hot.worker;
    void *thread;
    if (__builtin_expect(!tmk_thread_slot_read(&w->slot, &thread), 0))
        return false;
    const void *frame = thread ? *(void *const *)((const char *)thread + w->thread_frame) : NULL;
    if (frame && w->indirect)
        frame = *(void *const *)((const char *)frame + w->cframe_frame);
    return !frame;
}

static inline bool tmk_pyframe_is_ready(void)
{
    return atomic_load_explicit(&tmk_pyframe_hot.find[0], memory_order_acquire) != NULL;
}

#endif
