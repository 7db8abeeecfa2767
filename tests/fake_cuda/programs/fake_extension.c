/* SPDX-License-Identifier: MIT */
/* fake_extension.c - a library that Python loads with RTLD_LOCAL, as it loads extensions, and that
 * needs libcudart.so: neither's symbols are seen by anybody else. */
#include "cuda_list.h"
#include "fake_cudart.h"

#define MIB (1ull << 20)

__attribute__((visibility("default"))) void extension_run(void);
__attribute__((visibility("default"))) void extension_run_to_the_end(void);

static void *freed_last;

static void *listed(const char *family, int device, void *address, size_t size)
{
    list_add(family, device, (uintptr_t)address, size);
    return address;
}

static void use_device(int device)
{
    void *plain, *kept, *host, *managed, *async, *pitched;
    size_t pitch;
    CUmemoryPool pool;
    uint64_t reserved;
    OK(cudaSetDevice(device));
    OK(cudaMalloc(&plain, 3 * MIB));
    listed("device", device, plain, 3 * MIB);
    OK(cudaMalloc(&kept, 512));
    listed("device", device, kept, 512);
    OK(cudaMallocPitch(&pitched, &pitch, 100, 10));
    listed("device", device, pitched, pitch * 10);
    OK(cudaMallocHost(&host, MIB));
    listed("pinned", LIST_NO_DEVICE, host, MIB);
    OK(cudaMallocManaged(&managed, 2 * MIB, CU_MEM_ATTACH_GLOBAL));
    listed("managed", device, managed, 2 * MIB);
    OK(cudaMallocAsync(&async, MIB, NULL));
    listed("async", device, async, MIB);
    OK(cudaDeviceGetDefaultMemPool(&pool, device));
    OK(cudaMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved));
    list_pool(device, (uintptr_t)pool, reserved);
    list_free("device", (uintptr_t)plain);
    OK(cudaFree(plain));
    list_free("pinned", (uintptr_t)host);
    OK(cudaFreeHost(host));
    list_free("async", (uintptr_t)async);
    OK(cudaFreeAsync(async, NULL));
}

void extension_run(void)
{
    use_device(0);
    use_device(1);
    list_print();
}

void extension_run_to_the_end(void)
{
    OK(cudaSetDevice(0));
    OK(cudaMalloc(&freed_last, 3 * MIB));
    listed("device", 0, freed_last, 3 * MIB);
}

/* As destructors of C++ libraries do: when the driver is gone, and all with it. */
__attribute__((destructor)) static void end(void)
{
    if (!freed_last)
        return;
    NEED(cudaFree(freed_last), CUDA_ERROR_DEINITIALIZED);
    list_print();
}
