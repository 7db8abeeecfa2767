/* SPDX-License-Identifier: MIT */
/* wrap_cuda.c - for LD_PRELOAD: stands in front of the driver, as tools do that share a card among
 * containers: it defines cuMemAlloc_v2 and cuMemFree_v2, and dlsym and cuGetProcAddress, which give
 * these. It says at the end how often they were called. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fake_cuda_api.h"

static atomic_int n_allocated, n_freed;

static void *real_dlsym(void *handle, const char *name)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
    void *(*real)(void *, const char *) = NULL;
    for (int i = 0; i < 3 && !real; i++)
        *(void **)&real = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    return real(handle, name);
}

/* The driver's own: of the program's libraries, or of the one that was opened. */
static void *real_of(const char *name)
{
    void *found = real_dlsym(RTLD_NEXT, name);
    void *library = found ? NULL : dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return found ? found : real_dlsym(library, name);
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size)
{
    static __typeof__(&cuMemAlloc_v2) real;
    if (!real)
        *(void **)&real = real_of("cuMemAlloc_v2");
    n_allocated++;
    return real(address, size);
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    static __typeof__(&cuMemFree_v2) real;
    if (!real)
        *(void **)&real = real_of("cuMemFree_v2");
    n_freed++;
    return real(address);
}

static void *ours(const char *name);

CUresult cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
                             int *status)
{
    static __typeof__(&cuGetProcAddress_v2) real;
    if (!real)
        *(void **)&real = real_of("cuGetProcAddress_v2");
    CUresult code = real(name, function, version, flags, status);
    char symbol[64];
    snprintf(symbol, sizeof symbol, "%s_v2", name);
    if (code == CUDA_SUCCESS && ours(symbol))
        *function = ours(symbol);
    return code;
}

static void *ours(const char *name)
{
    if (strcmp(name, "cuMemAlloc_v2") == 0)
        return (void *)cuMemAlloc_v2;
    if (strcmp(name, "cuMemFree_v2") == 0)
        return (void *)cuMemFree_v2;
    return strcmp(name, "cuGetProcAddress_v2") == 0 ? (void *)cuGetProcAddress_v2 : NULL;
}

void *dlsym(void *restrict handle, const char *restrict name)
{
    void *own = ours(name);
    return own ? own : real_dlsym(handle, name);
}

/* Not in `tidemark run`, which is preloaded like the program. */
__attribute__((destructor)) static void tell(void)
{
    if (strncmp(program_invocation_short_name, "cuda_", 5) == 0)
        dprintf(STDERR_FILENO, "wrap_cuda: %d, %d\n", n_allocated, n_freed);
}
