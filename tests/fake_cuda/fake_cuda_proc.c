/* SPDX-License-Identifier: MIT */
/* fake_cuda_proc.c - how functions of the stand-in libcuda.so.1 are found, and names of codes. */
#include <string.h>

#include "fake_cuda.h"

struct function {
    const char *name;
    int since; /* the version of CUDA that brought it */
    void *address;
    bool is_per_thread;
};

#define LISTED(name, symbol, since, parameters) {#name, since, (void *)symbol, false},
#define LISTED_PER_THREAD(name, symbol, since, parameters) {#name, since, (void *)symbol, true},
static const struct function functions[] = {CUDA_FUNCTIONS(LISTED)
                                                CUDA_FUNCTIONS_PER_THREAD(LISTED_PER_THREAD)};

enum { N_FUNCTIONS = sizeof functions / sizeof functions[0] };

/* The newest of that name that `version` has, and what became of the search. */
static const struct function *find(const char *name, int version, uint64_t flags, int *ret_status)
{
    bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    const struct function *found = NULL;
    *ret_status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    for (int i = 0; i < N_FUNCTIONS; i++) {
        const struct function *f = &functions[i];
        if (strcmp(f->name, name) != 0 || (f->is_per_thread && !per_thread))
            continue;
        if (f->since <= version)
            found = f;
        else if (!found)
            *ret_status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    }
    if (found)
        *ret_status = CU_GET_PROC_ADDRESS_SUCCESS;
    return found;
}

/* It may be asked before the driver is started. What is not there is told by the status. */
CUresult cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
                             int *status)
{
    int newest = 0, found_status;
    cuDriverGetVersion(&newest);
    if (!name || !function || version > newest)
        return CUDA_ERROR_INVALID_VALUE;
    const struct function *found = find(name, version, flags, &found_status);
    *function = found ? found->address : NULL;
    if (status)
        *status = found_status;
    return CUDA_SUCCESS;
}

/* The first form has no status, and says so by its code. */
CUresult cuGetProcAddress(const char *name, void **function, int version, uint64_t flags)
{
    CUresult code = cuGetProcAddress_v2(name, function, version, flags, NULL);
    return !code && !*function ? CUDA_ERROR_NOT_FOUND : code;
}

/* ---- codes ---- */

#define CODES(X)                                                                                   \
    X(CUDA_SUCCESS, "no error")                                                                    \
    X(CUDA_ERROR_INVALID_VALUE, "invalid argument")                                                \
    X(CUDA_ERROR_OUT_OF_MEMORY, "out of memory")                                                   \
    X(CUDA_ERROR_NOT_INITIALIZED, "initialization error")                                          \
    X(CUDA_ERROR_DEINITIALIZED, "driver shutting down")                                            \
    X(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected")                                  \
    X(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal")                                         \
    X(CUDA_ERROR_INVALID_CONTEXT, "invalid device context")                                        \
    X(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle")                                        \
    X(CUDA_ERROR_NOT_FOUND, "named symbol not found")                                              \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed")                                     \
    X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,                                                   \
      "part or all of the requested memory range is already mapped")                               \
    X(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer does not correspond to a registered memory") \
    X(CUDA_ERROR_NOT_SUPPORTED, "operation not supported")

CUresult cuGetErrorName(CUresult code, const char **name)
{
    switch (code) {
#define NAME_OF(c, t)                                                                              \
    case c:                                                                                        \
        *name = #c;                                                                                \
        return CUDA_SUCCESS;
        CODES(NAME_OF)
    default:
        *name = NULL;
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuGetErrorString(CUresult code, const char **text)
{
    switch (code) {
#define TEXT_OF(c, t)                                                                              \
    case c:                                                                                        \
        *text = t;                                                                                 \
        return CUDA_SUCCESS;
        CODES(TEXT_OF)
    default:
        *text = NULL;
        return CUDA_ERROR_INVALID_VALUE;
    }
}
