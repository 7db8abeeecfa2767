/* SPDX-License-Identifier: MIT */
/* fake_cudart.c - a runtime library over the driver, such as frameworks bring with them: few of
 * cudart's functions, which find the driver's at the first call, as cudart does (cuda_ways.c). */
#include "fake_cudart.h"

#include <pthread.h>
#include <stdbool.h>

#include "cuda_calls.h"

enum { MOST_DEVICES = 64 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext contexts[MOST_DEVICES];
static __thread int chosen;
static __thread bool is_current;

static void start(void)
{
    cuda_ways_find("proc");
    CU(cuInit)(0);
}

/* The thread's device has a context and it is current. */
static int ready(void)
{
    int code = 0;
    pthread_once(&once, start);
    if (is_current)
        return 0;
    pthread_mutex_lock(&lock);
    if (!contexts[chosen])
        code = CU(cuDevicePrimaryCtxRetain)(&contexts[chosen], chosen);
    pthread_mutex_unlock(&lock);
    if (!code)
        code = CU(cuCtxSetCurrent)(contexts[chosen]);
    is_current = code == 0;
    return code;
}

int cudaSetDevice(int device)
{
    chosen = device;
    is_current = false;
    return ready();
}

static int given(int code, void **address, const CUdeviceptr *found)
{
    if (!code)
        *address = (void *)(uintptr_t)*found;
    return code;
}

int cudaMalloc(void **address, size_t size)
{
    CUdeviceptr found = 0;
    int code = ready();
    return given(code ? code : CU(cuMemAlloc)(&found, size), address, &found);
}

int cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height)
{
    CUdeviceptr found = 0;
    int code = ready();
    return given(code ? code : CU(cuMemAllocPitch)(&found, pitch, width, height, 4), address,
                 &found);
}

int cudaMallocManaged(void **address, size_t size, unsigned flags)
{
    CUdeviceptr found = 0;
    int code = ready();
    return given(code ? code : CU(cuMemAllocManaged)(&found, size, flags), address, &found);
}

int cudaMallocAsync(void **address, size_t size, CUstream stream)
{
    CUdeviceptr found = 0;
    int code = ready();
    return given(code ? code : CU(cuMemAllocAsync)(&found, size, stream), address, &found);
}

int cudaMallocHost(void **address, size_t size)
{
    int code = ready();
    return code ? code : CU(cuMemHostAlloc)(address, size, 0);
}

int cudaFree(void *address)
{
    int code = ready();
    return code ? code : CU(cuMemFree)((uintptr_t)address);
}

int cudaFreeAsync(void *address, CUstream stream)
{
    int code = ready();
    return code ? code : CU(cuMemFreeAsync)((uintptr_t)address, stream);
}

int cudaFreeHost(void *address)
{
    int code = ready();
    return code ? code : CU(cuMemFreeHost)(address);
}

int cudaDeviceGetDefaultMemPool(CUmemoryPool *pool, int device)
{
    int code = ready();
    return code ? code : CU(cuDeviceGetDefaultMemPool)(pool, device);
}

int cudaMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value)
{
    int code = ready();
    return code ? code : CU(cuMemPoolGetAttribute)(pool, attribute, value);
}
