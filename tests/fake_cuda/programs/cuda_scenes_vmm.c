/* SPDX-License-Identifier: MIT */
/* cuda_scenes_vmm.c - virtual memory and pools. */
#include "cuda_list.h"
#include "cuda_scenes.h"

/* ---- virtual memory ---- */

CUmemGenericAllocationHandle scene_create(int device, size_t size)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
    OK(CU(cuMemCreate)(&handle, size, &what, 0));
    list_add("physical", device, handle, size);
    return handle;
}

void scene_map(int device, CUdeviceptr address, size_t size, CUmemGenericAllocationHandle handle)
{
    CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, device},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK(CU(cuMemMap)(address, size, 0, handle, 0));
    list_add("mapping", device, address, size);
    OK(CU(cuMemSetAccess)(address, size, &access, 1));
}

void scene_unmap(CUdeviceptr address, size_t size)
{
    list_free("mapping", address);
    OK(CU(cuMemUnmap)(address, size));
}

/* As torch: unmapped, then released. */
static void remove_part(CUdeviceptr at, size_t size, CUmemGenericAllocationHandle handle)
{
    scene_unmap(at, size);
    list_free("physical", handle);
    OK(CU(cuMemRelease)(handle));
}

/* A segment that grows and shrinks: parts of `size` bytes at the addresses behind `at`. */
static void expandable_segment(CUdeviceptr at, size_t size)
{
    CUmemGenericAllocationHandle parts[8];
    for (unsigned i = 0; i < 6; i++) {
        parts[i] = scene_create(0, size);
        scene_map(0, at + i * size, size, parts[i]);
    }
    for (unsigned i = 3; i < 5; i++)
        remove_part(at + i * size, size, parts[i]);
    parts[3] = scene_create(0, size);
    scene_map(0, at + 3 * size, size, parts[3]);
    remove_part(at + 5 * size, size, parts[5]);
}

/* As NCCL and JAX: released as soon as it is mapped, and so gone when it is unmapped. One call
 * unmaps all three. */
static void released_first(CUdeviceptr at, size_t size)
{
    CUmemGenericAllocationHandle parts[3];
    for (unsigned i = 0; i < 3; i++) {
        parts[i] = scene_create(0, size);
        scene_map(0, at + i * size, size, parts[i]);
        OK(CU(cuMemRelease)(parts[i]));
    }
    for (unsigned i = 0; i < 3; i++) {
        list_free("mapping", at + i * size);
        list_free("physical", parts[i]);
    }
    OK(CU(cuMemUnmap)(at, 3 * size));
}

/* Held twice, mapped twice: gone at the last of the four. The others stay, held by a mapping or by
 * a handle. */
static void held_twice(CUdeviceptr at, size_t size)
{
    CUmemGenericAllocationHandle handle = scene_create(0, size), again;
    scene_map(0, at, size, handle);
    scene_map(0, at + size, size, handle);
    OK(CU(cuMemRetainAllocationHandle)(&again, (void *)(uintptr_t)at));
    OK(again != handle);
    OK(CU(cuMemRelease)(handle));
    scene_unmap(at, size);
    OK(CU(cuMemRelease)(again));
    list_free("physical", handle);
    scene_unmap(at + size, size);

    handle = scene_create(0, size);
    scene_map(0, at + size, size, handle);
    OK(CU(cuMemRelease)(handle));
    NEED(CU(cuMemRelease)(handle), CUDA_ERROR_INVALID_VALUE); /* it is the mapping that holds it */

    handle = scene_create(0, size);
    scene_map(0, at, size, handle);
    OK(CU(cuMemRetainAllocationHandle)(&again, (void *)(uintptr_t)at));
    OK(CU(cuMemRelease)(handle));
    scene_unmap(at, size);
}

void scene_vmm(void)
{
    CUdeviceptr large, small, other;
    size_t granularity, free_bytes, total_bytes;
    CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    scene_start(0);
    OK(CU(cuMemGetAllocationGranularity)(&granularity, &what, 0));
    OK(granularity != 2 * MIB);
    OK(CU(cuMemGetInfo)(&free_bytes, &total_bytes));
    OK(CU(cuMemAddressReserve)(&large, 8 * GIB, 0, 0, 0));
    OK(CU(cuMemAddressReserve)(&small, 8 * GIB, 0, 0, 0));
    OK(CU(cuMemAddressReserve)(&other, 64 * MIB, 0, 0, 0));
    expandable_segment(large, 20 * MIB);
    expandable_segment(small, 2 * MIB);
    released_first(other, 4 * MIB);
    held_twice(other + 32 * MIB, 4 * MIB);
    NEED(CU(cuMemAddressFree)(large, 8 * GIB), CUDA_ERROR_INVALID_VALUE);
}

/* ---- pools ---- */

static uint64_t attribute(CUmemoryPool pool, int number)
{
    uint64_t value = 0;
    OK(CU(cuMemPoolGetAttribute)(pool, number, &value));
    return value;
}

static void need_sizes(CUmemoryPool pool, uint64_t reserved, uint64_t used)
{
    OK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) != reserved);
    OK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) != used);
}

/* It keeps all until it is trimmed. */
static void hoarding_pool(CUmemoryPool pool, CUstream stream)
{
    uint64_t all = UINT64_MAX, none = 0;
    OK(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
    CUdeviceptr parts[4];
    for (int i = 0; i < 4; i++) {
        parts[i] = scene_alloc_async(0, 20 * MIB, pool, stream);
        scene_note_pool(0, pool);
    }
    need_sizes(pool, 128 * MIB, 80 * MIB);
    for (int i = 1; i < 4; i++)
        scene_free_async(parts[i], stream);
    OK(CU(cuStreamSynchronize)(stream));
    need_sizes(pool, 128 * MIB, 20 * MIB);
    OK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) != 80 * MIB);
    OK(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &none));
    OK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) != 20 * MIB);
    scene_note_pool(0, pool);
    OK(CU(cuMemPoolTrimTo)(pool, 64 * MIB));
    need_sizes(pool, 64 * MIB, 20 * MIB);
    scene_note_pool(0, pool);
    OK(CU(cuMemPoolTrimTo)(pool, 0));
    need_sizes(pool, 32 * MIB, 20 * MIB);
    scene_note_pool(0, pool);
    OK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) != 128 * MIB);

    /* It ends with its last allocation. */
    OK(CU(cuMemPoolDestroy)(pool));
    scene_free_async(parts[0], stream);
    list_pool(0, (uintptr_t)pool, 0);
}

/* It gives back when it is synchronised. */
static void default_pool(CUmemoryPool pool, CUstream stream)
{
    CUdeviceptr first = scene_alloc_async(0, 100 * MIB, NULL, stream);
    scene_note_pool(0, pool);
    need_sizes(pool, 128 * MIB, 100 * MIB);
    scene_free_async(first, stream);
    need_sizes(pool, 128 * MIB, 0);
    CUdeviceptr second = scene_alloc_async(0, 50 * MIB, NULL, stream);
    scene_free_async(second, stream);
    OK(CU(cuCtxSynchronize)());
    need_sizes(pool, 0, 0);
    scene_note_pool(0, pool);
    scene_alloc_async(0, 512, NULL, stream);
    scene_note_pool(0, pool);
}

void scene_pools(void)
{
    CUstream stream;
    CUmemoryPool standard, current, own;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    scene_start(0);
    OK(CU(cuStreamCreate)(&stream, 0));
    OK(CU(cuDeviceGetDefaultMemPool)(&standard, 0));
    OK(CU(cuMemPoolCreate)(&own, &props));
    default_pool(standard, stream);

    OK(CU(cuDeviceSetMemPool)(0, own));
    OK(CU(cuDeviceGetMemPool)(&current, 0));
    OK(current != own);
    hoarding_pool(own, stream);
    OK(CU(cuStreamDestroy)(stream));
    OK(CU(cuDeviceGetMemPool)(&current, 0));
    OK(current != standard);
}
