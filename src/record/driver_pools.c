/* SPDX-License-Identifier: MIT */
/* record/driver_pools.c - see driver.h: memory in the order of streams, from pools; and memory and
 * addresses apart, which torch's expandable segments and NCCL use. */
#include <stdatomic.h>

#include "record/driver_calls.h"
#include "record/held.h"
#include "record/torch.h"

enum { DEVICE_CUDA = 1, MAX_DEVICES = 64 };

/* ---- pools ---- */

/* Of memory from a pool, or asked for on a stream: another device's than the thread's, perhaps. */
static uint16_t device_of_pointer(tmk_cu_pointer p)
{
    int (*ask)(void *ret, int attribute, tmk_cu_pointer p) =
        (int (*)(void *, int, tmk_cu_pointer))tmk_driver_ask(TMK_ASK_POINTER);
    int device = 0;
    return ask && ask(&device, TMK_CU_POINTER_DEVICE, p) == TMK_CU_SUCCESS ? (uint16_t)device
                                                                           : tmk_driver_device();
}

void tmk_driver_note_pool(uint64_t pool, uint16_t device)
{
    int (*ask)(tmk_cu_handle pool, int attribute, void *ret) =
        (int (*)(tmk_cu_handle, int, void *))tmk_driver_ask(TMK_ASK_POOL_ATTRIBUTE);
    uint64_t reserved = 0;
    if (pool && ask &&
        ask((tmk_cu_handle)pool, TMK_CU_POOL_RESERVED_NOW, &reserved) == TMK_CU_SUCCESS)
        tmk_held_pool(pool, device, reserved);
}

static uint64_t pool_of_device(uint16_t device)
{
    int (*ask)(tmk_cu_handle * ret, int device) =
        (int (*)(tmk_cu_handle *, int))tmk_driver_ask(TMK_ASK_POOL_OF_DEVICE);
    tmk_cu_handle pool = NULL;
    return ask && ask(&pool, device) == TMK_CU_SUCCESS ? (uintptr_t)pool : 0;
}

/* Where torch says nothing of its blocks, these are them; else they are somebody else's. It is
 * decided once, so that what begins as the one ends as it. */
static bool are_blocks(uint16_t device)
{
    enum { NOT_KNOWN, BLOCKS, SEGMENTS };
    static _Atomic uint8_t decided[MAX_DEVICES];
    if (device >= MAX_DEVICES)
        return false;
    uint8_t is = atomic_load_explicit(&decided[device], memory_order_relaxed);
    if (is == NOT_KNOWN) {
        is = tmk_torch_has_said((uint16_t)(DEVICE_CUDA << 8 | device)) ? SEGMENTS : BLOCKS;
        atomic_store(&decided[device], is);
    }
    return is == BLOCKS;
}

/* The pool first: it has grown for this one. `from` is NULL for the device's own. */
static int noted_async(int rc, const tmk_cu_pointer *p, size_t n, tmk_cu_handle from,
                       tmk_cu_handle stream)
{
    bool is_threads = !from && (uintptr_t)stream <= TMK_CU_LAST_DEFAULT_STREAM;
    uint16_t device =
        rc == TMK_CU_SUCCESS && !is_threads ? device_of_pointer(*p) : tmk_driver_device();
    uint64_t pool = from ? (uintptr_t)from : rc == TMK_CU_SUCCESS ? pool_of_device(device) : 0;
    bool is_block = are_blocks(device);
    if (rc != TMK_CU_SUCCESS) {
        if (rc == TMK_CU_OUT_OF_MEMORY && is_block)
            tmk_torch_note_oom((uint16_t)(DEVICE_CUDA << 8 | device), n,
                               tmk_held_pool_bytes(device));
        return is_block ? rc : tmk_driver_refused(rc, n, device);
    }
    tmk_driver_note_pool(pool, device);
    tmk_held_begin(&(struct tmk_driver_segment){.address = *p,
                                                .size_bytes = n,
                                                .owner = pool,
                                                .stream = (uintptr_t)stream,
                                                .is_block = is_block,
                                                .device = device,
                                                .kind = TMK_SEGMENT_ASYNC});
    return rc;
}

int tmk_cuMemAllocAsync(tmk_cu_pointer *ret, size_t n, tmk_cu_handle stream)
{
    int rc = TMK_DRIVER(cuMemAllocAsync, ret, n, stream);
    return noted_async(rc, ret, n, NULL, stream);
}

int tmk_cuMemAllocAsync_ptsz(tmk_cu_pointer *ret, size_t n, tmk_cu_handle stream)
{
    int rc = TMK_DRIVER(cuMemAllocAsync_ptsz, ret, n, stream);
    return noted_async(rc, ret, n, NULL, stream);
}

int tmk_cuMemAllocFromPoolAsync(tmk_cu_pointer *ret, size_t n, tmk_cu_handle pool,
                                tmk_cu_handle stream)
{
    int rc = TMK_DRIVER(cuMemAllocFromPoolAsync, ret, n, pool, stream);
    return noted_async(rc, ret, n, pool, stream);
}

int tmk_cuMemAllocFromPoolAsync_ptsz(tmk_cu_pointer *ret, size_t n, tmk_cu_handle pool,
                                     tmk_cu_handle stream)
{
    int rc = TMK_DRIVER(cuMemAllocFromPoolAsync_ptsz, ret, n, pool, stream);
    return noted_async(rc, ret, n, pool, stream);
}

static int ended_async(int rc, bool was_there, const struct tmk_driver_segment *gone)
{
    tmk_driver_ended(rc, was_there, gone);
    if (was_there && gone->kind == TMK_SEGMENT_ASYNC)
        tmk_driver_note_pool(gone->owner, gone->device);
    return rc;
}

int tmk_cuMemFreeAsync(tmk_cu_pointer p, tmk_cu_handle stream)
{
    struct tmk_driver_segment gone;
    bool was_there = tmk_held_end_pointer(p, &gone);
    return ended_async(TMK_DRIVER(cuMemFreeAsync, p, stream), was_there, &gone);
}

int tmk_cuMemFreeAsync_ptsz(tmk_cu_pointer p, tmk_cu_handle stream)
{
    struct tmk_driver_segment gone;
    bool was_there = tmk_held_end_pointer(p, &gone);
    return ended_async(TMK_DRIVER(cuMemFreeAsync_ptsz, p, stream), was_there, &gone);
}

int tmk_cuMemPoolTrimTo(tmk_cu_handle pool, size_t keep)
{
    int rc = TMK_DRIVER(cuMemPoolTrimTo, pool, keep);
    if (rc == TMK_CU_SUCCESS)
        tmk_driver_note_pool((uintptr_t)pool, tmk_held_device(TMK_SEGMENT_POOL, (uintptr_t)pool,
                                                              tmk_driver_device()));
    return rc;
}

/* Whoever asks what a pool holds, torch for its own figures, tells us too: a pool also shrinks when
 * the program waits for its stream. */
int tmk_cuMemPoolGetAttribute(tmk_cu_handle pool, int attribute, void *ret)
{
    int rc = TMK_DRIVER(cuMemPoolGetAttribute, pool, attribute, ret);
    if (rc == TMK_CU_SUCCESS && attribute == TMK_CU_POOL_RESERVED_NOW && ret)
        tmk_held_pool((uintptr_t)pool,
                      tmk_held_device(TMK_SEGMENT_POOL, (uintptr_t)pool, tmk_driver_device()),
                      *(const uint64_t *)ret);
    return rc;
}

int tmk_cuMemPoolDestroy(tmk_cu_handle pool)
{
    uint16_t device = tmk_held_device(TMK_SEGMENT_POOL, (uintptr_t)pool, tmk_driver_device());
    int rc = TMK_DRIVER(cuMemPoolDestroy, pool);
    if (rc == TMK_CU_SUCCESS)
        tmk_held_end_pool((uintptr_t)pool, device);
    return rc;
}

/* ---- memory and addresses apart ---- */

/* Of the host's nodes it is not the card's memory. */
int tmk_cuMemCreate(uint64_t *ret, size_t n, const struct tmk_cu_memory_properties *properties,
                    unsigned long long flags)
{
    int rc = TMK_DRIVER(cuMemCreate, ret, n, properties, flags);
    bool is_ours = properties && properties->location.type == TMK_CU_LOCATION_DEVICE;
    uint16_t device = is_ours ? (uint16_t)properties->location.id : tmk_driver_device();
    if (rc != TMK_CU_SUCCESS)
        return tmk_driver_refused(rc, n, device);
    if (is_ours)
        tmk_held_begin(&(struct tmk_driver_segment){.address = *ret,
                                                    .size_bytes = n,
                                                    .n_refs = 1,
                                                    .device = device,
                                                    .kind = TMK_SEGMENT_PHYSICAL});
    return rc;
}

int tmk_cuMemRelease(uint64_t memory)
{
    tmk_held_release(memory);
    return TMK_DRIVER(cuMemRelease, memory);
}

int tmk_cuMemMap(tmk_cu_pointer p, size_t n, size_t offset, uint64_t memory,
                 unsigned long long flags)
{
    int rc = TMK_DRIVER(cuMemMap, p, n, offset, memory, flags);
    if (rc != TMK_CU_SUCCESS)
        return rc;
    tmk_held_map(&(struct tmk_driver_segment){
        .address = p,
        .size_bytes = n,
        .owner = memory,
        .device = tmk_held_device(TMK_SEGMENT_PHYSICAL, memory, tmk_driver_device()),
        .kind = TMK_SEGMENT_MAPPING});
    return rc;
}

int tmk_cuMemUnmap(tmk_cu_pointer p, size_t n)
{
    int rc = TMK_DRIVER(cuMemUnmap, p, n);
    if (rc == TMK_CU_SUCCESS)
        tmk_held_unmap(p, n);
    return rc;
}

int tmk_cuMemRetainAllocationHandle(uint64_t *ret, void *p)
{
    int rc = TMK_DRIVER(cuMemRetainAllocationHandle, ret, p);
    if (rc == TMK_CU_SUCCESS)
        tmk_held_retain(*ret);
    return rc;
}

TMK_CALLS_POOLS(TMK_DRIVER_EXPORT)
