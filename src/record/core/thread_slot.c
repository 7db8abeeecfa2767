/* SPDX-License-Identifier: MIT */
/* record/core/thread_slot.c - see thread_slot.h.
 *
 * glibc tells debuggers where the values stand in a thread's descriptor. (A key of our own would
 * show it, too, but a process that uses CUDA has more keys than there is room for in it.) Which of
 * them get() reads is tried: several may have the same value (extensions keep Python's state under
 * keys of their own, too), but only one changes its answer. */
#include "record/core/thread_slot.h"

#include <dlfcn.h>

#include "base/signals.h"

/* glibc's: one for each key there can be, the number of its life first. */
struct thread_key {
    uintptr_t life;
    void (*destroy)(void *);
};
enum { FIRST_KEYS = 32, LEAST_BYTES = 512, MOST_BYTES = 8192 };

/* As glibc tells debuggers. */
static const void *find_private(const char *name)
{
    return dlvsym(RTLD_DEFAULT, name, "GLIBC_PRIVATE");
}

/* Those of this thread for the first keys, in its descriptor; NULL: they are not where we think. */
static const struct tmk_thread_value *find_values(void)
{
    enum { OFFSET = 2 }; /* behind the size of it, in bits, and a number */
    const uint32_t *bytes = find_private("_thread_db_sizeof_pthread");
    const uint32_t *blocks = find_private("_thread_db_pthread_specific"); /* of values */
    uintptr_t self = (uintptr_t)pthread_self(), values;
    if (!bytes || *bytes < LEAST_BYTES || *bytes > MOST_BYTES || !blocks ||
        blocks[OFFSET] % sizeof values != 0 || blocks[OFFSET] > *bytes - sizeof values)
        return NULL;
    values = *(const uintptr_t *)(self + blocks[OFFSET]);
    bool is_inside = values > self && values % sizeof(uintptr_t) == 0 &&
                     values + FIRST_KEYS * sizeof(struct tmk_thread_value) <= self + *bytes;
    return is_inside ? (const struct tmk_thread_value *)values : NULL;
}

/* Does get() answer by this key, whose value `now` is its answer, and is it here? Signals wait
 * meanwhile: their handlers may want the value, and follow it. */
static bool is_key_of(void *(*get)(void), pthread_key_t key, void *now,
                      const volatile struct tmk_thread_value *here)
{
    char other;
    bool is_so = false;
    sigset_t before;
    tmk_signals_hold(&before);
    if (pthread_setspecific(key, &other) == 0) {
        is_so = get() == &other && here->value == &other;
        pthread_setspecific(key, now);
    }
    tmk_signals_release(&before);
    return is_so;
}

bool tmk_thread_slot_find(void *(*get)(void), struct tmk_thread_slot *ret)
{
    void *now = get();
    const struct thread_key *keys = now ? find_private("__pthread_keys") : NULL;
    const struct tmk_thread_value *values = keys ? find_values() : NULL;
    *ret = (struct tmk_thread_slot){0};
    for (pthread_key_t key = 0; values && key < FIRST_KEYS; key++) {
        uintptr_t life = keys[key].life;
        if (values[key].value != now || values[key].life != life ||
            !is_key_of(get, key, now, &values[key]))
            continue;
        ret->offset = (ptrdiff_t)((uintptr_t)&values[key] - tmk_thread_pointer());
        ret->life_then = life;
        ret->life = &keys[key].life;
        return true;
    }
    return false;
}
