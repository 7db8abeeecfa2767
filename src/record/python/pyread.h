/* SPDX-License-Identifier: MIT */
/* record/python/pyread.h - read CPython's frames by their layout (pylayout.h). Only the calling
 * thread's: while it is in a C call it does not change them. */
#ifndef TMK_RECORD_PYREAD_H
#define TMK_RECORD_PYREAD_H

#include "base/bytes.h"
#include "record/core/thread_slot.h"
#include "record/python/pyframe_hot.h"
#include "record/python/pylayout.h"
#include "record/python/pyruntime.h"

extern struct tmk_pyruntime tmk_pyframe_runtime; /* valid when stacks can be read */

/* The calling thread's Python thread state; NULL when it has none, as threads of C++ programs. */
static inline const void *tmk_pyread_thread(void)
{
    void *value;
    if (__builtin_expect(tmk_thread_slot_read(&tmk_pyframe_hot.slot, &value), 1))
        return value;
    return tmk_pyframe_runtime.this_thread();
}

static inline const void *tmk_pyread_pointer(const void *base, uint16_t offset)
{
    return (const void *)(uintptr_t)tmk_load_u64((const uint8_t *)base + offset);
}

static inline const void *tmk_pyread_code(const struct tmk_pylayout *l, const void *frame)
{
    uintptr_t word = (uintptr_t)tmk_pyread_pointer(frame, l->frame_code);
    return (const void *)(l->tagged ? word & ~(uintptr_t)3 : word);
}

static inline uint32_t tmk_pyread_offset(const struct tmk_pylayout *l, const void *frame,
                                         const void *code)
{
    const uint8_t *at = (const uint8_t *)frame + l->frame_instruction;
    if (l->count_scale)
        return tmk_load_u32(at) * l->count_scale;
    return (uint32_t)(tmk_load_u64(at) - (uintptr_t)code - l->code_start);
}

/* The innermost frame; NULL when there is none, and in a sub-interpreter, whose frames are not
 * read. */
static inline const void *tmk_pyread_top(const struct tmk_pylayout *l, const void *thread)
{
    if (!thread ||
        tmk_pyread_pointer(thread, l->thread_interpreter) != tmk_pyframe_hot.main_interpreter)
        return NULL;
    const void *frame = tmk_pyread_pointer(thread, l->thread_frame);
    return l->indirect && frame ? tmk_pyread_pointer(frame, l->cframe_frame) : frame;
}

/* True for a frame that stands for an entry from C. */
static inline bool tmk_pyread_is_entry(const struct tmk_pylayout *l, const void *frame)
{
    return l->has_owner && ((const uint8_t *)frame)[l->frame_owner] >= TMK_PYFRAME_OWNED_BY_C;
}

/* True for the frame of a Python function. From 3.13 on a frame's code may be something else. */
static inline bool tmk_pyread_is_function(const struct tmk_pylayout *l, const void *frame,
                                          const void *code)
{
    if (tmk_pyread_is_entry(l, frame))
        return false;
    return code && (l->minor < 13 ||
                    tmk_pyread_pointer(code, l->object_type) == tmk_pyframe_runtime.code_type);
}

/* The next frame of a Python function, from `frame` on; NULL behind the last. */
static inline const void *tmk_pyread_next_function(const struct tmk_pylayout *l, const void *frame)
{
    while (frame && !tmk_pyread_is_function(l, frame, tmk_pyread_code(l, frame)))
        frame = tmk_pyread_pointer(frame, l->frame_back);
    return frame;
}

#endif
