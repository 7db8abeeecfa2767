/* SPDX-License-Identifier: MIT */
/* record/loader.c - see loader.h. */
#include "record/loader.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

#include "record/driver.h"

typedef void *dlsym_function(void *handle, const char *name);

/* Any number of threads may look at once, and before our constructor has run. */
static _Atomic uintptr_t next_dlsym;

/* dlvsym() finds the C library's by its version; asked from here, that finds the next one. */
static dlsym_function *find_next(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        dlsym_function *base = (dlsym_function *)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
        if (!base)
            continue;
        dlsym_function *next = (dlsym_function *)base(RTLD_NEXT, "dlsym");
        return next ? next : base;
    }
    return NULL;
}

void *tmk_loader_next_dlsym(void)
{
    uintptr_t next = atomic_load_explicit(&next_dlsym, memory_order_acquire);
    if (next == 0) {
        next = (uintptr_t)find_next();
        atomic_store_explicit(&next_dlsym, next, memory_order_release);
    }
    return (void *)next;
}

/* RTLD_NEXT and RTLD_DEFAULT are for the C library to answer, which knows who asks: where the
 * driver is to be found so, our own definition is what it finds. */
void *tmk_loader_answer(void *handle, const char *name)
{
    dlsym_function *next = (dlsym_function *)tmk_loader_next_dlsym();
    if (handle == RTLD_NEXT || handle == RTLD_DEFAULT || !next || !tmk_driver_hook(name, NULL))
        return NULL;
    void *real = next(handle, name);
    return real ? tmk_driver_hook(name, real) : NULL;
}
