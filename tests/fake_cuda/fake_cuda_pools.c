/* SPDX-License-Identifier: MIT */
/* fake_cuda_pools.c - pools, and what is allocated from them in the order of a stream.
 *
 * A pool takes slabs of 32 MiB or more from its card, and gives a slab that has become empty back
 * only when it is synchronised or trimmed, and only as far as it keeps what it shall keep. */
#include <stdio.h>
#include <stdlib.h>

#include "fake_cuda.h"

struct CUmemPoolHandle_st {
    CUdevice device;
    bool is_default, is_destroyed; /* destroyed: ends with its last allocation */
    int reuse[CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES]; /* by attribute - 1 */
    uint64_t threshold;
    uint64_t reserved, reserved_high, used, used_high;
    int n_allocations;
    CUmemoryPool next;
};

static CUmemoryPool pools; /* all there are, the newest first */
static CUmemoryPool default_pools[FAKE_MOST_VISIBLE], current_pools[FAKE_MOST_VISIBLE];

static CUmemoryPool pool_add(CUdevice device, bool is_default)
{
    CUmemoryPool pool = calloc(1, sizeof *pool);
    *pool = (struct CUmemPoolHandle_st){
        .device = device, .is_default = is_default, .reuse = {1, 1, 1}, .next = pools};
    pools = pool;
    return pool;
}

static CUmemoryPool default_pool(CUdevice device)
{
    if (!default_pools[device])
        default_pools[device] = pool_add(device, true);
    return default_pools[device];
}

static CUmemoryPool current_pool(CUdevice device)
{
    return current_pools[device] ? current_pools[device] : default_pool(device);
}

/* The real one looks into what it is given; what is no pool, or has ended, may be the program's
 * end there, and is the program's end here. */
static bool is_pool(CUmemoryPool wanted)
{
    for (CUmemoryPool pool = pools; pool; pool = pool->next)
        if (pool == wanted)
            return !pool->is_destroyed;
    if (wanted) {
        fprintf(stderr, "fake_cuda: %p is not a pool, or not any more\n", (void *)wanted);
        abort();
    }
    return false;
}

/* Give empty slabs back while `keep` bytes stay. */
static void trim(CUmemoryPool pool, uint64_t keep)
{
    for (int i = fake_slabs.n - 1; i >= 0; i--) {
        const struct fake_range *slab = &fake_slabs.ranges[i];
        if (slab->pool != pool || pool->reserved < keep || pool->reserved - keep < slab->size ||
            !fake_slab_is_empty(slab))
            continue;
        pool->reserved -= slab->size;
        fake_slab_remove(slab);
    }
}

/* It ends when nothing is left in it. */
static void end_if_done(CUmemoryPool pool)
{
    if (!pool->is_destroyed || pool->n_allocations > 0)
        return;
    trim(pool, 0);
    CUmemoryPool *link = &pools;
    while (*link != pool)
        link = &(*link)->next;
    *link = pool->next;
    free(pool);
}

void fake_pools_synchronize(CUdevice device)
{
    for (CUmemoryPool pool = pools; pool; pool = pool->next)
        if (pool->device == device)
            trim(pool, pool->threshold);
}

/* ---- allocating ---- */

static CUresult grow(CUmemoryPool pool, size_t size, struct fake_range *ret_slab)
{
    struct fake_range slab = {
        .size = fake_round_up(size, FAKE_CHUNK_BYTES), .device = pool->device, .pool = pool};
    CUresult code = fake_slab_add(&slab);
    if (code)
        return code;
    pool->reserved += slab.size;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    *ret_slab = slab;
    return CUDA_SUCCESS;
}

static CUdeviceptr gap_in(CUmemoryPool pool, size_t size)
{
    CUdeviceptr found = 0;
    for (int i = 0; i < fake_slabs.n && !found; i++)
        if (fake_slabs.ranges[i].pool == pool)
            found = fake_slab_gap(&fake_slabs.ranges[i], size);
    return found;
}

static CUresult pool_alloc(CUdeviceptr *address, size_t size, CUmemoryPool pool)
{
    struct fake_range slab = {0};
    struct fake_range range = {
        .size = size, .kind = FAKE_ASYNC, .device = pool->device, .pool = pool};
    if (!address || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    range.start = gap_in(pool, size);
    CUresult code = range.start ? CUDA_SUCCESS : grow(pool, size, &slab);
    if (code)
        return code;
    if (!range.start)
        range.start = slab.start;
    fake_table_add(&fake_allocations, &range);
    pool->n_allocations++;
    pool->used += fake_round_up(size, FAKE_ALIGNMENT);
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    *address = range.start;
    return CUDA_SUCCESS;
}

void fake_pool_free(struct fake_range *range)
{
    CUmemoryPool pool = range->pool;
    pool->used -= fake_round_up(range->size, FAKE_ALIGNMENT);
    pool->n_allocations--;
    fake_table_remove(&fake_allocations, range);
    end_if_done(pool);
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t size, CUstream stream)
{
    FAKE_CALL call = fake_enter_context();
    if (call.code)
        return call.code;
    CUdevice device = fake_stream_context(stream, call.context)->device;
    return pool_alloc(address, size, current_pool(device));
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t size, CUmemoryPool pool,
                                 CUstream stream)
{
    (void)stream;
    FAKE_CALL call = fake_enter_context();
    if (call.code)
        return call.code;
    return is_pool(pool) ? pool_alloc(address, size, pool) : CUDA_ERROR_INVALID_VALUE;
}

/* Of a pool's memory, and, as the real one, of what cuMemAlloc gave. */
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    (void)stream;
    FAKE_CALL call = fake_enter_context();
    if (call.code)
        return call.code;
    struct fake_range *range = fake_table_find(&fake_allocations, address);
    if (!range || range->start != address ||
        (range->kind != FAKE_ASYNC && range->kind != FAKE_SMALL && range->kind != FAKE_LARGE))
        return CUDA_ERROR_INVALID_VALUE;
    fake_allocation_free(range);
    return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t size, CUstream stream)
{
    return cuMemAllocAsync(address, size, stream);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *address, size_t size, CUmemoryPool pool,
                                      CUstream stream)
{
    return cuMemAllocFromPoolAsync(address, size, pool, stream);
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream)
{
    return cuMemFreeAsync(address, stream);
}

/* ---- pools ---- */

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *what)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    if (!pool || !what || what->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        what->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!fake_is_device(what->location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    *pool = pool_add(what->location.id, false);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    if (!is_pool(pool) || pool->is_default)
        return CUDA_ERROR_INVALID_VALUE;
    if (current_pools[pool->device] == pool)
        current_pools[pool->device] = NULL;
    pool->is_destroyed = true;
    end_if_done(pool);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes_to_keep)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    if (!is_pool(pool))
        return CUDA_ERROR_INVALID_VALUE;
    trim(pool, bytes_to_keep);
    return CUDA_SUCCESS;
}

/* The highest values can be set to 0 only, which means: to what is now. */
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    if (!is_pool(pool) || !value)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        pool->reuse[attribute - 1] = *(const int *)value;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        pool->threshold = *(const uint64_t *)value;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (*(const uint64_t *)value != 0)
            return CUDA_ERROR_INVALID_VALUE;
        if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
            pool->used_high = pool->used;
        else
            pool->reserved_high = pool->reserved;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    if (!is_pool(pool) || !value)
        return CUDA_ERROR_INVALID_VALUE;
    const uint64_t *from;
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *(int *)value = pool->reuse[attribute - 1];
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        from = &pool->threshold;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        from = &pool->reserved;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        from = &pool->reserved_high;
        break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        from = &pool->used;
        break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        from = &pool->used_high;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    *(uint64_t *)value = *from;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    if (!fake_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *pool = default_pool(device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    if (!fake_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *pool = current_pool(device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    if (!fake_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!is_pool(pool) || pool->device != device)
        return CUDA_ERROR_INVALID_VALUE;
    current_pools[device] = pool;
    return CUDA_SUCCESS;
}
