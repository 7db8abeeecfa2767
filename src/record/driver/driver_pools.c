/* SPDX-License-Identifier: MIT */
/* record/driver/driver_pools.c - see driver.h: stream-ordered memory from pools; and memory and
 * addresses apart (the virtual memory API), which torch's expandable segments and NCCL use. */
#include "record/core/parts.h"
#include "record/core/torch_state.h"
#include "record/driver/driver_calls.h"
#include "record/driver/driver_changes.h"
#include "record/driver/driver_table.h"
#include "trace/layout.h"
#include "trace/segments.h"

enum { MAX_DEVICES = TMK_DRIVER_DEVICES };

/* ---- pools ---- */

/* The device of memory from a pool or a stream, which may be another than the thread's; -1: the
 * host. */
static int device_of_pointer(tmk_cu_pointer p)
{
    int (*ask)(void *ret, int attribute, tmk_cu_pointer p) =
        (int (*)(void *, int, tmk_cu_pointer))tmk_driver_ask(TMK_ASK_POINTER);
    int device = 0;
    if (!ask || ask(&device, TMK_CU_POINTER_DEVICE, p) != TMK_CU_SUCCESS)
        return tmk_driver_device();
    return device >= 0 && device < MAX_DEVICES ? device : -1;
}

/* Note a pool's size, because it may have grown or shrunk. */
static void note_pool(uint64_t pool, uint16_t device)
{
    int (*ask)(tmk_cu_handle pool, int attribute, void *ret) =
        (int (*)(tmk_cu_handle, int, void *))tmk_driver_ask(TMK_ASK_POOL_ATTRIBUTE);
    uint64_t reserved = 0;
    if (pool && ask &&
        ask((tmk_cu_handle)pool, TMK_CU_POOL_RESERVED_NOW, &reserved) == TMK_CU_SUCCESS)
        tmk_driver_table_pool(pool, device, reserved);
}

/* Allocations of a capture happen when the graph runs. */
static bool is_capturing(tmk_cu_handle stream)
{
    int (*ask)(tmk_cu_handle stream, int *ret) =
        (int (*)(tmk_cu_handle, int *))tmk_driver_ask(TMK_ASK_CAPTURING);
    int status = 0;
    return ask && ask(stream, &status) == TMK_CU_SUCCESS && status != 0;
}

static uint64_t pool_of_device(uint16_t device)
{
    int (*ask)(tmk_cu_handle * ret, int device) =
        (int (*)(tmk_cu_handle *, int))tmk_driver_ask(TMK_ASK_POOL_OF_DEVICE);
    tmk_cu_handle pool = NULL;
    return ask && ask(&pool, device) == TMK_CU_SUCCESS ? (uintptr_t)pool : 0;
}

/* True when torch does not report blocks of the device: then these are its blocks, else they are
 * somebody else's. */
static bool are_torch_blocks(int device)
{
    return !tmk_torch_has_said(tmk_cuda_device((unsigned)device));
}

static int note_refused_async(int rc, size_t n)
{
    int device = tmk_driver_device();
    if (!are_torch_blocks(device))
        return tmk_driver_refused(rc, n, device);
    if (rc == TMK_CU_OUT_OF_MEMORY)
        tmk_parts.note_oom(tmk_cuda_device((unsigned)device), n);
    return rc;
}

/* The pool is noted first, because it has grown for this one. `from` NULL is the device's own
 * pool. */
static int note_async(int rc, const tmk_cu_pointer *p, size_t n, tmk_cu_handle from,
                      tmk_cu_handle stream)
{
    if (rc != TMK_CU_SUCCESS)
        return note_refused_async(rc, n);
    bool is_threads = !from && (uintptr_t)stream <= TMK_CU_LAST_DEFAULT_STREAM;
    int device = is_threads ? tmk_driver_device() : device_of_pointer(*p);
    if (device < 0 || is_capturing(stream))
        return rc;
    uint64_t pool = from ? (uintptr_t)from : pool_of_device((uint16_t)device);
    note_pool(pool, (uint16_t)device);
    tmk_driver_table_begin(&(struct tmk_driver_segment){.address = *p,
                                                        .size_bytes = n,
                                                        .owner = pool,
                                                        .stream = (uintptr_t)stream,
                                                        .is_block = are_torch_blocks(device),
                                                        .device = (uint16_t)device,
                                                        .kind = TMK_SEGMENT_ASYNC});
    return rc;
}

int tmk_cuMemAllocAsync(tmk_cu_pointer *ret, size_t n, tmk_cu_handle stream)
{
    int rc = TMK_DRIVER(cuMemAllocAsync, ret, n, stream);
    return note_async(rc, ret, n, NULL, stream);
}

int tmk_cuMemAllocAsync_ptsz(tmk_cu_pointer *ret, size_t n, tmk_cu_handle stream)
{
    int rc = TMK_DRIVER(cuMemAllocAsync_ptsz, ret, n, stream);
    return note_async(rc, ret, n, NULL, stream);
}

int tmk_cuMemAllocFromPoolAsync(tmk_cu_pointer *ret, size_t n, tmk_cu_handle pool,
                                tmk_cu_handle stream)
{
    int rc = TMK_DRIVER(cuMemAllocFromPoolAsync, ret, n, pool, stream);
    return note_async(rc, ret, n, pool, stream);
}

int tmk_cuMemAllocFromPoolAsync_ptsz(tmk_cu_pointer *ret, size_t n, tmk_cu_handle pool,
                                     tmk_cu_handle stream)
{
    int rc = TMK_DRIVER(cuMemAllocFromPoolAsync_ptsz, ret, n, pool, stream);
    return note_async(rc, ret, n, pool, stream);
}

int tmk_driver_ended_pointer(int rc, bool was_there, const struct tmk_driver_segment *gone)
{
    tmk_driver_ended(rc, was_there, gone);
    if (was_there && gone->kind == TMK_SEGMENT_ASYNC)
        note_pool(gone->owner, gone->device);
    return rc;
}

static bool end_async(tmk_cu_pointer p, tmk_cu_handle stream, struct tmk_driver_segment *ret)
{
    return !is_capturing(stream) && tmk_driver_table_end_pointer(p, ret);
}

int tmk_cuMemFreeAsync(tmk_cu_pointer p, tmk_cu_handle stream)
{
    struct tmk_driver_segment gone;
    bool was_there = end_async(p, stream, &gone);
    return tmk_driver_ended_pointer(TMK_DRIVER(cuMemFreeAsync, p, stream), was_there, &gone);
}

int tmk_cuMemFreeAsync_ptsz(tmk_cu_pointer p, tmk_cu_handle stream)
{
    struct tmk_driver_segment gone;
    bool was_there = end_async(p, stream, &gone);
    return tmk_driver_ended_pointer(TMK_DRIVER(cuMemFreeAsync_ptsz, p, stream), was_there, &gone);
}

int tmk_cuMemPoolTrimTo(tmk_cu_handle pool, size_t keep)
{
    TMK_IN_CALL;
    int rc = TMK_DRIVER(cuMemPoolTrimTo, pool, keep);
    int device = tmk_driver_table_device(TMK_SEGMENT_POOL, (uintptr_t)pool);
    if (rc == TMK_CU_SUCCESS && device >= 0)
        note_pool((uintptr_t)pool, (uint16_t)device);
    return rc;
}

/* When somebody asks what a pool holds, as torch does for its own figures, we learn it too: a pool
 * also shrinks when the program waits for its stream. */
int tmk_cuMemPoolGetAttribute(tmk_cu_handle pool, int attribute, void *ret)
{
    int rc = TMK_DRIVER(cuMemPoolGetAttribute, pool, attribute, ret);
    int device = tmk_driver_table_device(TMK_SEGMENT_POOL, (uintptr_t)pool);
    if (rc == TMK_CU_SUCCESS && attribute == TMK_CU_POOL_RESERVED_NOW && ret && device >= 0)
        tmk_driver_table_pool((uintptr_t)pool, (uint16_t)device, *(const uint64_t *)ret);
    return rc;
}

int tmk_cuMemPoolDestroy(tmk_cu_handle pool)
{
    TMK_IN_CALL;
    tmk_driver_table_end_pool((uintptr_t)pool); /* before another may have its handle */
    return TMK_DRIVER(cuMemPoolDestroy, pool);
}

/* ---- memory and addresses apart ---- */

/* Memory of the host's NUMA nodes is not the GPU's. */
int tmk_cuMemCreate(uint64_t *ret, size_t n, const struct tmk_cu_memory_properties *properties,
                    unsigned long long flags)
{
    TMK_IN_CALL;
    int rc = TMK_DRIVER(cuMemCreate, ret, n, properties, flags);
    bool is_cards = properties && properties->location.type == TMK_CU_LOCATION_DEVICE;
    int device = is_cards ? properties->location.id : -1;
    if (rc != TMK_CU_SUCCESS)
        return tmk_driver_refused(rc, n, device);
    if (device >= 0)
        tmk_driver_table_begin(&(struct tmk_driver_segment){.address = *ret,
                                                            .size_bytes = n,
                                                            .n_refs = 1,
                                                            .device = (uint16_t)device,
                                                            .kind = TMK_SEGMENT_PHYSICAL});
    return rc;
}

int tmk_cuMemRelease(uint64_t memory)
{
    TMK_IN_CALL;
    tmk_driver_table_release(memory);
    return TMK_DRIVER(cuMemRelease, memory);
}

int tmk_cuMemMap(tmk_cu_pointer p, size_t n, size_t offset, uint64_t memory,
                 unsigned long long flags)
{
    int rc = TMK_DRIVER(cuMemMap, p, n, offset, memory, flags);
    if (rc != TMK_CU_SUCCESS)
        return rc;
    int device = tmk_driver_table_device(TMK_SEGMENT_PHYSICAL, memory);
    tmk_driver_table_map(
        &(struct tmk_driver_segment){.address = p,
                                     .size_bytes = n,
                                     .owner = memory,
                                     .device = device < 0 ? tmk_driver_device() : (uint16_t)device,
                                     .kind = TMK_SEGMENT_MAPPING});
    return rc;
}

/* Nobody can map anything there before this returns. */
int tmk_cuMemUnmap(tmk_cu_pointer p, size_t n)
{
    TMK_IN_CALL;
    int rc = TMK_DRIVER(cuMemUnmap, p, n);
    if (rc == TMK_CU_SUCCESS)
        tmk_driver_table_unmap(p, n);
    return rc;
}

int tmk_cuMemRetainAllocationHandle(uint64_t *ret, void *p)
{
    int rc = TMK_DRIVER(cuMemRetainAllocationHandle, ret, p);
    if (rc == TMK_CU_SUCCESS)
        tmk_driver_table_retain(*ret);
    return rc;
}

/* A handle of this process gets another owner; memory of another process counts as that one's. */
int tmk_cuMemImportFromShareableHandle(uint64_t *ret, void *from, int type)
{
    int rc = TMK_DRIVER(cuMemImportFromShareableHandle, ret, from, type);
    if (rc == TMK_CU_SUCCESS)
        tmk_driver_table_retain(*ret);
    return rc;
}

TMK_CALLS_POOLS(TMK_DRIVER_EXPORT)
