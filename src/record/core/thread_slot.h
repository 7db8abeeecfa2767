/* SPDX-License-Identifier: MIT */
/* record/core/thread_slot.h - read a thread's value of a pthread key that is not ours, without a
 * function call.
 *
 * Python keeps each thread's state under such a key and returns it from
 * PyGILState_GetThisThreadState: three functions in two libraries, which a training has pushed out
 * of the caches by its next block. glibc keeps the values of the first 32 keys in the thread's own
 * descriptor, beside the number of the key's life, and compares that number with the current one;
 * so does this code. The key is found by trying. If the layout is not as expected, there is no
 * slot, and the function is called instead. */
#ifndef TMK_RECORD_THREAD_SLOT_H
#define TMK_RECORD_THREAD_SLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One key's entry in each thread's descriptor, as glibc has it. */
struct tmk_thread_value {
    uintptr_t life;
    void *value;
};

/* Where the entry is. All zero: there is no slot. */
struct tmk_thread_slot {
    ptrdiff_t offset;               /* of a struct tmk_thread_value, from the thread pointer */
    const volatile uintptr_t *life; /* number of the key's life, as it is now */
    uintptr_t life_then; /* the number when the key was found: another key may reuse its place */
};

/* Find the slot that holds the value of get(), which must not be NULL in the calling thread. False:
 * not found. For a moment, in which it takes no signals, the thread has another value. */
bool tmk_thread_slot_find(void *(*get)(void), struct tmk_thread_slot *ret);

static inline uintptr_t tmk_thread_pointer(void)
{
    uintptr_t pointer;
#ifdef __x86_64__
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
#else
    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
#endif
    return pointer;
}

/* Read the calling thread's value; NULL: it has none. False when there is no slot, or its key is
 * gone. */
static inline bool tmk_thread_slot_read(const struct tmk_thread_slot *slot, void **ret)
{
    const struct tmk_thread_value *v =
        (const struct tmk_thread_value *)(tmk_thread_pointer() + (uintptr_t)slot->offset);
    if (__builtin_expect(!slot->life || *slot->life != slot->life_then, 0))
        return false;
    *ret = v->life == slot->life_then ? v->value : NULL;
    return true;
}

#endif
