/* SPDX-License-Identifier: MIT */
/* record/loader/loader.c - see loader.h. */
#include "record/loader/loader.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef void *dlsym_function(void *handle, const char *name);

/* Any number of threads may look at once, and before our constructor has run. */
static _Atomic uintptr_t next_dlsym, own_dlsym;

/* dlvsym() finds it by its version, which other preloaded libraries' dlsym has not. */
static dlsym_function *find_c_library_dlsym(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
    void *found = NULL;
    for (size_t i = 0; i < sizeof versions / sizeof versions[0] && !found; i++)
        found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    return (dlsym_function *)found;
}

static dlsym_function *c_library_dlsym(void)
{
    uintptr_t found = atomic_load_explicit(&own_dlsym, memory_order_acquire);
    if (found == 0) {
        found = (uintptr_t)find_c_library_dlsym();
        atomic_store_explicit(&own_dlsym, found, memory_order_release);
    }
    return (dlsym_function *)found;
}

void *tmk_loader_symbol(void *handle, const char *name)
{
    dlsym_function *ask = c_library_dlsym();
    void *volatile found = ask ? ask(handle, name) : NULL; /* no jump: it is we who ask */
    return found;
}

/* Asked from here, the C library's finds the next one. */
static dlsym_function *find_next_dlsym(void)
{
    dlsym_function *next = (dlsym_function *)tmk_loader_symbol(RTLD_NEXT, "dlsym");
    return next ? next : c_library_dlsym();
}

void *tmk_loader_next_dlsym(void)
{
    uintptr_t next = atomic_load_explicit(&next_dlsym, memory_order_acquire);
    if (next == 0) {
        next = (uintptr_t)find_next_dlsym();
        atomic_store_explicit(&next_dlsym, next, memory_order_release);
    }
    return (void *)next;
}
