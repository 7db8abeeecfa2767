/* SPDX-License-Identifier: MIT */
/* cuda_scenes.c - families, threads, a full card, contexts, another process's memory. */
#include "cuda_scenes.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_list.h"

/* ---- calls that are listed ---- */

static void enter(int device)
{
    CUcontext context;
    OK(CU(cuDevicePrimaryCtxRetain)(&context, device));
    OK(CU(cuCtxSetCurrent)(context));
}

void scene_start(int device)
{
    OK(CU(cuInit)(0));
    enter(device);
}

CUdeviceptr scene_alloc(int device, size_t size)
{
    CUdeviceptr address;
    OK(CU(cuMemAlloc)(&address, size));
    list_add("device", device, address, size);
    return address;
}

void scene_free(CUdeviceptr address)
{
    list_free("device", address);
    OK(CU(cuMemFree)(address));
}

CUdeviceptr scene_alloc_async(int device, size_t size, CUmemoryPool pool, CUstream stream)
{
    CUdeviceptr address;
    if (pool)
        OK(CU(cuMemAllocFromPoolAsync)(&address, size, pool, stream));
    else
        OK(CU(cuMemAllocAsync)(&address, size, stream));
    list_add("async", device, address, size);
    return address;
}

void scene_free_async(CUdeviceptr address, CUstream stream)
{
    list_free("async", address);
    OK(CU(cuMemFreeAsync)(address, stream));
}

void scene_note_pool(int device, CUmemoryPool pool)
{
    uint64_t reserved = 0;
    OK(CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved));
    list_pool(device, (uintptr_t)pool, reserved);
}

/* ---- families ---- */

static void device_memory(void)
{
    CUdeviceptr pitched;
    size_t pitch = 0;
    scene_alloc(0, 512);
    CUdeviceptr second = scene_alloc(0, MIB + 1);
    scene_alloc(0, 100 * MIB);
    scene_free(second);
    OK(CU(cuMemAllocPitch)(&pitched, &pitch, 1000, 64, 4));
    list_add("device", 0, pitched, pitch * 64);
    CUdeviceptr crossed = scene_alloc(0, 3 * MIB);
    list_free("device", crossed);
    OK(CU(cuMemFreeAsync)(crossed, NULL));
}

/* What fails leaves nothing. */
static void failures(void)
{
    CUdeviceptr address = 0;
    CUmemGenericAllocationHandle handle;
    CUarray array;
    void *host = NULL;
    NEED(CU(cuMemAlloc)(&address, 0), CUDA_ERROR_INVALID_VALUE);
    NEED(CU(cuMemAlloc)(&address, 1ull << 50), CUDA_ERROR_OUT_OF_MEMORY);
    NEED(CU(cuMemFree)(4096), CUDA_ERROR_INVALID_VALUE);
    NEED(CU(cuMemHostAlloc)(&host, 0, 0), CUDA_ERROR_INVALID_VALUE);
    NEED(CU(cuMemFreeHost)(&host), CUDA_ERROR_INVALID_VALUE);
    NEED(CU(cuMemAlloc)(NULL, 512), CUDA_ERROR_INVALID_VALUE);
    NEED(CU(cuMemAllocAsync)(NULL, 512, NULL), CUDA_ERROR_INVALID_VALUE);
    NEED(CU(cuMemAllocPitch)(&address, NULL, 512, 1, 4), CUDA_ERROR_INVALID_VALUE);
    NEED(CU(cuMemHostAlloc)(NULL, 512, 0), CUDA_ERROR_INVALID_VALUE);
    NEED(CU(cuArrayCreate)(&array, NULL), CUDA_ERROR_INVALID_VALUE);
    NEED(CU(cuArray3DCreate)(&array, NULL), CUDA_ERROR_INVALID_VALUE);
    NEED(CU(cuMemCreate)(&handle, 2 * MIB, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemFree)(0));
}

static void host_memory(void)
{
    void *first, *second, *lent = aligned_alloc(4096, 16 * KIB);
    CUdeviceptr managed, gone;
    OK(CU(cuMemHostAlloc)(&first, MIB, 0));
    memset(first, 1, MIB);
    list_add("pinned", LIST_NO_DEVICE, (uintptr_t)first, MIB);
    OK(CU(cuMemAllocHost)(&second, 64 * KIB));
    list_add("pinned", LIST_NO_DEVICE, (uintptr_t)second, 64 * KIB);
    list_free("pinned", (uintptr_t)first);
    OK(CU(cuMemFreeHost)(first));

    OK(CU(cuMemHostRegister)(lent, 8 * KIB, 0));
    list_add("registered", LIST_NO_DEVICE, (uintptr_t)lent, 8 * KIB);
    NEED(CU(cuMemHostRegister)(lent, 8 * KIB, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    list_free("registered", (uintptr_t)lent);
    OK(CU(cuMemHostUnregister)(lent));
    NEED(CU(cuMemHostUnregister)(lent), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    OK(CU(cuMemHostRegister)(lent, 16 * KIB, 0));
    list_add("registered", LIST_NO_DEVICE, (uintptr_t)lent, 16 * KIB);

    OK(CU(cuMemAllocManaged)(&managed, 4 * MIB, CU_MEM_ATTACH_GLOBAL));
    memset((void *)(uintptr_t)managed, 1, 4 * MIB);
    list_add("managed", 0, managed, 4 * MIB);
    OK(CU(cuMemAllocManaged)(&gone, 5 * MIB, CU_MEM_ATTACH_GLOBAL));
    list_add("managed", 0, gone, 5 * MIB);
    list_free("managed", gone);
    OK(CU(cuMemFree)(gone));
}

static void arrays(void)
{
    CUarray flat, deep;
    CUDA_ARRAY_DESCRIPTOR of_flat = {
        .Width = 640, .Height = 480, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
    CUDA_ARRAY3D_DESCRIPTOR of_deep = {
        .Width = 64, .Height = 32, .Depth = 16, .Format = CU_AD_FORMAT_HALF, .NumChannels = 2};
    OK(CU(cuArrayCreate)(&flat, &of_flat));
    list_add("array", 0, (uintptr_t)flat, 640 * 480 * 4 * 4);
    OK(CU(cuArray3DCreate)(&deep, &of_deep));
    list_add("array", 0, (uintptr_t)deep, 64 * 32 * 16 * 2 * 2);
    list_free("array", (uintptr_t)flat);
    OK(CU(cuArrayDestroy)(flat));
}

static void pool_memory(void)
{
    CUstream stream;
    CUmemoryPool standard, own;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    OK(CU(cuStreamCreate)(&stream, 0));
    OK(CU(cuDeviceGetDefaultMemPool)(&standard, 0));
    OK(CU(cuMemPoolCreate)(&own, &props));
    CUdeviceptr first = scene_alloc_async(0, 1000, NULL, stream);
    scene_note_pool(0, standard);
    CUdeviceptr second = scene_alloc_async(0, 40 * MIB, own, stream);
    scene_note_pool(0, own);
    scene_alloc_async(0, 3 * MIB, NULL, NULL);
    scene_free_async(first, stream);
    list_free("async", second);
    OK(CU(cuMemFree)(second));
    OK(CU(cuStreamSynchronize)(stream));
    scene_note_pool(0, standard);
    scene_note_pool(0, own);
    OK(CU(cuStreamDestroy)(stream));
}

static void virtual_memory(void)
{
    CUdeviceptr at;
    OK(CU(cuMemAddressReserve)(&at, 64 * MIB, 0, 0, 0));
    CUmemGenericAllocationHandle kept = scene_create(0, 4 * MIB), gone = scene_create(0, 2 * MIB);
    scene_map(0, at, 4 * MIB, kept);
    scene_map(0, at + 4 * MIB, 2 * MIB, gone);
    scene_unmap(at + 4 * MIB, 2 * MIB);
    list_free("physical", gone);
    OK(CU(cuMemRelease)(gone));
}

void scene_families(void)
{
    CUmodule module;
    scene_start(0);
    device_memory();
    failures();
    host_memory();
    arrays();
    pool_memory();
    virtual_memory();
    OK(CU(cuModuleLoadData)(&module, "code"));
    OK(CU(cuModuleUnload)(module));
}

/* ---- threads ---- */

static void *use_device(void *number)
{
    int device = (int)(intptr_t)number / 2;
    CUdeviceptr kept[8];
    CUstream stream;
    enter(device);
    OK(CU(cuStreamCreate)(&stream, 0));
    for (unsigned i = 0; i < 8; i++)
        kept[i] = scene_alloc(device, (i + 1) * 700 * KIB);
    for (int i = 0; i < 8; i += 2)
        scene_free(kept[i]);
    CUdeviceptr first = scene_alloc_async(device, MIB, NULL, stream);
    scene_alloc_async(device, 2 * MIB, NULL, stream);
    scene_free_async(first, stream);
    scene_alloc(device, 5 * MIB + (uintptr_t)number);
    OK(CU(cuStreamDestroy)(stream));
    return NULL;
}

void scene_threads(void)
{
    pthread_t threads[128];
    int n_devices;
    OK(CU(cuInit)(0));
    OK(CU(cuDeviceGetCount)(&n_devices));
    for (int i = 0; i < 2 * n_devices; i++)
        OK(pthread_create(&threads[i], NULL, use_device, (void *)(intptr_t)i));
    for (int i = 0; i < 2 * n_devices; i++)
        OK(pthread_join(threads[i], NULL));
    for (int device = 0; device < n_devices; device++) {
        CUmemoryPool pool;
        OK(CU(cuDeviceGetDefaultMemPool)(&pool, device));
        scene_note_pool(device, pool);
    }
}

/* Of several threads, each frees what it has and takes it again: addresses go from one to the
 * other. */
static void *race(void *number)
{
    CUdeviceptr last = 0;
    enter(0);
    for (unsigned i = 0; i < 200; i++) {
        CUdeviceptr next = scene_alloc(0, (i % 2 ? 3 : 5) * MIB);
        if (last)
            scene_free(last);
        last = next;
    }
    return number;
}

void scene_race(void)
{
    pthread_t threads[4];
    OK(CU(cuInit)(0));
    for (int i = 0; i < 4; i++)
        OK(pthread_create(&threads[i], NULL, race, NULL));
    for (int i = 0; i < 4; i++)
        OK(pthread_join(threads[i], NULL));
}

/* The device of a stream or of a pool counts, not the thread's. */
void scene_streams(void)
{
    CUstream there;
    CUmemoryPool pool;
    scene_start(1);
    OK(CU(cuStreamCreate)(&there, 0));
    enter(0);
    CUdeviceptr address = scene_alloc_async(1, 5 * MIB, NULL, there);
    OK(CU(cuDeviceGetDefaultMemPool)(&pool, 1));
    scene_note_pool(1, pool);
    scene_alloc_async(1, 6 * MIB, NULL, there);
    scene_free_async(address, NULL);
    OK(CU(cuStreamDestroy)(there));
    scene_alloc_async(0, 7 * MIB, NULL, NULL);
    OK(CU(cuDeviceGetDefaultMemPool)(&pool, 0));
    scene_note_pool(0, pool);
    OK(CU(cuDeviceGetDefaultMemPool)(&pool, 1));
    scene_alloc_async(1, 40 * MIB, pool, NULL);
    scene_note_pool(1, pool);
}

/* ---- ends ---- */

/* Wait to be killed. */
void scene_hold(void)
{
    scene_families();
    list_print();
    pause();
}

/* The driver works in no child of a process that started it, but in what the child executes. */
static void use_in_child(void)
{
    CUdeviceptr address;
    NEED(CU(cuMemAlloc)(&address, MIB), CUDA_ERROR_NOT_INITIALIZED);
    NEED(CU(cuInit)(0), CUDA_ERROR_NOT_INITIALIZED);
    execl("/proc/self/exe", "cuda_loaded", "proc", "vmm", NULL);
    _exit(1);
}

void scene_fork(void)
{
    int status;
    scene_start(0);
    CUdeviceptr first = scene_alloc(0, 3 * MIB);
    scene_alloc_async(0, 4 * MIB, NULL, NULL);
    CUmemoryPool pool;
    OK(CU(cuDeviceGetDefaultMemPool)(&pool, 0));
    scene_note_pool(0, pool);
    pid_t child = fork();
    if (child == 0)
        use_in_child();
    OK(waitpid(child, &status, 0) != child || status != 0);
    scene_free(first);
    scene_alloc(0, 5 * MIB);
}

/* ---- a full card ---- */

static void fail_all_ways(size_t size)
{
    CUdeviceptr address;
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    NEED(CU(cuMemAlloc)(&address, size), CUDA_ERROR_OUT_OF_MEMORY);
    NEED(CU(cuMemAllocAsync)(&address, size, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    NEED(CU(cuMemCreate)(&handle, size, &what, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

void scene_full(void)
{
    CUdeviceptr kept[64] = {0}, address;
    size_t free_bytes, total_bytes;
    int n = 0;
    scene_start(0);
    while (n < 64 && CU(cuMemAlloc)(&address, 512 * MIB) == CUDA_SUCCESS) {
        list_add("device", 0, address, 512 * MIB);
        kept[n++] = address;
    }
    OK(n < 4 || n == 64); /* the card was too small or too large for this */
    fail_all_ways(512 * MIB);
    for (int i = 0; i < n / 2; i++)
        scene_free(kept[i]);
    for (int i = 0; i < n / 2; i++)
        scene_alloc(0, 512 * MIB);
    fail_all_ways(512 * MIB);
    OK(CU(cuMemGetInfo)(&free_bytes, &total_bytes));
    scene_alloc(0, free_bytes);
    fail_all_ways(2 * MIB);
}

/* ---- contexts ---- */

/* Memory ends with its context, made or primary. */
void scene_contexts(void)
{
    CUcontext made;
    CUdeviceptr in_made, in_primary;
    void *pinned;
    OK(CU(cuInit)(0));
    OK(CU(cuCtxCreate)(&made, 0, 0));
    in_made = scene_alloc(0, 7 * MIB);
    OK(CU(cuMemHostAlloc)(&pinned, 3 * MIB, 0));
    list_add("pinned", LIST_NO_DEVICE, (uintptr_t)pinned, 3 * MIB);
    enter(0);
    in_primary = scene_alloc(0, 9 * MIB);
    list_free("device", in_made);
    list_free("pinned", (uintptr_t)pinned);
    OK(CU(cuCtxDestroy)(made));
    list_free("device", in_primary);
    OK(CU(cuDevicePrimaryCtxRelease)(0));
    NEED(CU(cuMemFree)(in_primary), CUDA_ERROR_INVALID_VALUE);
    enter(0);
    CUdeviceptr in_next = scene_alloc(0, 11 * MIB);
    list_free("device", in_next);
    OK(CU(cuDevicePrimaryCtxReset)(0));
    scene_alloc(0, 13 * MIB);
}

/* ---- another process's memory ---- */

struct exported {
    CUipcMemHandle handle;
    size_t size;
};

static void export_memory(int to, int done)
{
    struct exported memory = {.size = 6 * MIB};
    char byte;
    scene_start(0);
    CUdeviceptr address = scene_alloc(0, memory.size);
    OK(CU(cuIpcGetMemHandle)(&memory.handle, address));
    OK(write(to, &memory, sizeof memory) != sizeof memory);
    OK(read(done, &byte, 1) != 1);
    scene_free(address);
    list_print();
    exit(0);
}

static CUdeviceptr open_memory(const struct exported *memory)
{
    CUdeviceptr address;
    OK(CU(cuIpcOpenMemHandle)(&address, memory->handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    list_add("ipc", 0, address, memory->size);
    return address;
}

void scene_ipc(void)
{
    int here[2], done[2], status;
    struct exported memory;
    OK(pipe(here) || pipe(done));
    pid_t child = fork();
    if (child == 0)
        export_memory(here[1], done[0]);
    OK(read(here[0], &memory, sizeof memory) != sizeof memory);
    scene_start(0);
    CUdeviceptr first = open_memory(&memory), again;
    list_free("ipc", first);
    OK(CU(cuIpcCloseMemHandle)(first));
    first = open_memory(&memory);
    OK(CU(cuIpcOpenMemHandle)(&again, memory.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    OK(again != first);
    OK(CU(cuIpcCloseMemHandle)(first)); /* opened twice, closed once */
    OK(write(done[1], "", 1) != 1);
    OK(waitpid(child, &status, 0) != child || status != 0);
}
