/* SPDX-License-Identifier: MIT */
/* A library that stands for the driver and looks for each of its functions at the first call, as
 * those do that a program is linked with in place of libcuda. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

static void *find(const char *name)
{
    static void *library;
    if (!library)
        library = dlopen("libcuda.so.1", RTLD_NOW);
    return dlsym(library, name);
}

#define STAND_IN(name, parameters, arguments)                                                      \
    int name parameters;                                                                           \
    int name parameters                                                                            \
    {                                                                                              \
        static int(*real) parameters;                                                              \
        if (!real)                                                                                 \
            *(void **)&real = find(#name);                                                         \
        return real arguments;                                                                     \
    }

STAND_IN(cuInit, (unsigned flags), (flags))
STAND_IN(cuDevicePrimaryCtxRetain, (void **ret, int device), (ret, device))
STAND_IN(cuCtxSetCurrent, (void *context), (context))
STAND_IN(cuMemAlloc_v2, (uint64_t * ret, size_t n), (ret, n))
STAND_IN(cuMemFree_v2, (uint64_t p), (p))
