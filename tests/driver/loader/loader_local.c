/* SPDX-License-Identifier: MIT */
/* loader_local.c - a library for RTLD_LOCAL: what it finds depends on that it is the one who asks.
 */
#include <dlfcn.h>

#include "loader_parts.h"

static int call(void *handle, const char *name)
{
    int (*function)(void);
    *(void **)&function = dlsym(handle, name);
    return function ? function() : -1;
}

int loader_own(void)
{
    return 20;
}

int loader_own_by_default(void)
{
    return call(RTLD_DEFAULT, "loader_own");
}

int loader_needed_by_default(void)
{
    return call(RTLD_DEFAULT, "loader_needed");
}

int loader_needed_by_next(void)
{
    return call(RTLD_NEXT, "loader_needed");
}

int loader_own_by_next(void)
{
    return call(RTLD_NEXT, "loader_own");
}

int loader_program_by_default(void)
{
    return call(RTLD_DEFAULT, "loader_in_program");
}

/* So that the linker sees that it is needed. */
int loader_need(void)
{
    return loader_needed();
}
