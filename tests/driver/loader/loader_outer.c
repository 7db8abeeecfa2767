/* SPDX-License-Identifier: MIT */
/* loader_outer.c - opens libloader_inner.so by its name alone. */
#include <dlfcn.h>

#include "loader_parts.h"

static int at_start;

int loader_open_inner(void)
{
    int (*inner)(void);
    void *handle = dlopen("libloader_inner.so", RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return -1;
    *(void **)&inner = dlsym(handle, "loader_inner");
    int found = inner ? inner() : -2;
    dlclose(handle);
    return found;
}

__attribute__((constructor)) static void start(void)
{
    at_start = loader_open_inner();
}

int loader_inner_at_start(void)
{
    return at_start;
}
