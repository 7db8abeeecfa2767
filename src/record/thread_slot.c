/* SPDX-License-Identifier: MIT */
/* record/thread_slot.c - see thread_slot.h.
 *
 * A key of our own shows where the values stand in a thread's descriptor. Which of them get() reads
 * is tried: several may have the same value (extensions keep Python's state under keys of their
 * own, too), but only one changes its answer. */
#include "record/thread_slot.h"

#include <dlfcn.h>

#include "base/signals.h"

/* glibc's: one for each key there can be, the number of its life first. */
struct key {
    uintptr_t life;
    void (*destroy)(void *);
};
enum { FIRST_KEYS = 32, LEAST_BYTES = 512, MOST_BYTES = 8192 };

/* What a descriptor is, and the keys, as glibc tells debuggers. */
struct glibc {
    const struct key *keys;
    size_t thread_bytes;
};

static bool find_glibc(struct glibc *ret)
{
    const uint32_t *bytes = dlvsym(RTLD_DEFAULT, "_thread_db_sizeof_pthread", "GLIBC_PRIVATE");
    ret->keys = dlvsym(RTLD_DEFAULT, "__pthread_keys", "GLIBC_PRIVATE");
    ret->thread_bytes = bytes ? *bytes : 0;
    return ret->keys && ret->thread_bytes >= LEAST_BYTES && ret->thread_bytes <= MOST_BYTES;
}

/* Of the first key's value in this thread's descriptor; NULL: not found. */
static const struct tmk_thread_value *find_values(const struct glibc *glibc)
{
    static const char mark;
    const struct tmk_thread_value *found = NULL;
    const uintptr_t *words = (const uintptr_t *)pthread_self();
    pthread_key_t key;
    if (pthread_key_create(&key, NULL) != 0)
        return NULL;
    if (key < FIRST_KEYS && pthread_setspecific(key, &mark) == 0)
        for (size_t i = 1; i < glibc->thread_bytes / sizeof *words && !found; i++)
            if (words[i] == (uintptr_t)&mark && words[i - 1] == glibc->keys[key].life)
                found = (const struct tmk_thread_value *)&words[i - 1] - key;
    pthread_key_delete(key);
    return found;
}

/* Does get() answer by this key, whose value `now` is its answer? Signals wait meanwhile: their
 * handlers may want the value, and follow it. */
static bool is_key_of(void *(*get)(void), pthread_key_t key, void *now)
{
    char other;
    bool is_so = false;
    sigset_t before;
    tmk_signals_hold(&before);
    if (pthread_setspecific(key, &other) == 0) {
        is_so = get() == &other;
        pthread_setspecific(key, now);
    }
    tmk_signals_release(&before);
    return is_so;
}

bool tmk_thread_slot_find(void *(*get)(void), struct tmk_thread_slot *ret)
{
    struct glibc glibc;
    void *now = get();
    const struct tmk_thread_value *values = now && find_glibc(&glibc) ? find_values(&glibc) : NULL;
    const struct key *keys = values ? glibc.keys : NULL;
    *ret = (struct tmk_thread_slot){0};
    for (pthread_key_t key = 0; values && key < FIRST_KEYS; key++) {
        uintptr_t life = keys[key].life;
        if (values[key].value != now || values[key].life != life || !is_key_of(get, key, now))
            continue;
        ret->offset = (ptrdiff_t)((uintptr_t)&values[key] - tmk_thread_pointer());
        ret->life_then = life;
        ret->life = &keys[key].life;
        return true;
    }
    return false;
}
