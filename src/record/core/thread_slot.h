/* SPDX-License-Identifier: MIT */
/* record/core/thread_slot.h - a thread's value of a pthread key of somebody else's, read without a
 * call.
 *
 * Python keeps each thread's state under such a key, and tells it by PyGILState_GetThisThreadState:
 * three functions in two libraries, which a training has pushed out of the caches by the time of
 * its next block. glibc has the values of the first 32 keys in the thread's own descriptor, beside
 * the number of the key's life, which is compared with that of now: so does this. Where the key is,
 * is found by trying: whatever the layout turns out not to be as expected, there is no slot, and
 * the function is called. */
#ifndef TMK_RECORD_THREAD_SLOT_H
#define TMK_RECORD_THREAD_SLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of a key, in each thread: as glibc has it. */
struct tmk_thread_value {
    uintptr_t life;
    void *value;
};

/* All zero: there is none. */
struct tmk_thread_slot {
    ptrdiff_t offset;               /* of a struct tmk_thread_value, from the thread's pointer */
    const volatile uintptr_t *life; /* of the key, as it is now */
    uintptr_t life_then;            /* and was when it was found: another key may come after it */
};

/* The slot of which get() tells the value, not NULL in the calling thread. False: it was not found.
 * For a moment, in which it takes no signals, the thread's value is another. */
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

/* False when there is no slot, or its key is gone. Else the calling thread's value, NULL when it
 * has none. */
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
