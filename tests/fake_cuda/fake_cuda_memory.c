/* SPDX-License-Identifier: MIT */
/* fake_cuda_memory.c - memory with an address, arrays and code: what is allocated at once. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_cuda.h"

static const uint64_t ipc_magic = 0x66616b65697063ull;

struct ipc_handle { /* what a CUipcMemHandle has in it */
    uint64_t magic, pid, address, size, card;
};

/* ---- the card's memory ---- */

static CUresult alloc_small(struct fake_range *range)
{
    struct fake_range slab = {
        .size = FAKE_GRANULE_BYTES, .device = range->device, .context = range->context};
    for (int i = 0; i < fake_slabs.n && !range->start; i++) {
        const struct fake_range *s = &fake_slabs.ranges[i];
        if (s->context == range->context && !s->pool)
            range->start = fake_slab_gap(s, range->size);
    }
    CUresult code = range->start ? CUDA_SUCCESS : fake_slab_add(&slab);
    if (code)
        return code;
    if (!range->start)
        range->start = slab.start;
    range->kind = FAKE_SMALL;
    fake_table_add(&fake_allocations, range);
    return CUDA_SUCCESS;
}

/* Granules of its own. */
static CUresult alloc_large(struct fake_range *range)
{
    range->charged_bytes = fake_round_up(range->size, FAKE_GRANULE_BYTES);
    CUresult code = fake_card_take(range->device, range->charged_bytes);
    if (code)
        return code;
    range->start = fake_addresses_take(range->size);
    if (range->start == 0) {
        fake_card_give_back(range->device, range->charged_bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    fake_table_add(&fake_allocations, range);
    return CUDA_SUCCESS;
}

static CUresult alloc(CUdeviceptr *address, size_t size, CUcontext context)
{
    struct fake_range range = {
        .size = size, .kind = FAKE_LARGE, .device = context->device, .context = context};
    if (!address || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult code = size <= FAKE_SMALL_BYTES ? alloc_small(&range) : alloc_large(&range);
    if (!code)
        *address = range.start;
    return code;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size)
{
    FAKE_CALL call = fake_enter_context();
    return call.code ? call.code : alloc(address, size, call.context);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                            unsigned element)
{
    FAKE_CALL call = fake_enter_context();
    if (call.code)
        return call.code;
    if (!pitch || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    size_t row = fake_round_up(width, FAKE_ALIGNMENT);
    CUresult code = alloc(address, row * height, call.context);
    if (!code)
        *pitch = row;
    return code;
}

static void free_small(struct fake_range *range)
{
    CUdeviceptr start = range->start;
    fake_table_remove(&fake_allocations, range);
    struct fake_range *slab = fake_table_find(&fake_slabs, start);
    if (fake_slab_is_empty(slab))
        fake_slab_remove(slab);
}

void fake_allocation_free(struct fake_range *range)
{
    struct fake_range r = *range;
    if (r.kind == FAKE_SMALL) {
        free_small(range);
        return;
    }
    if (r.kind == FAKE_ASYNC) {
        fake_pool_free(range);
        return;
    }
    fake_table_remove(&fake_allocations, range);
    if (r.charged_bytes)
        fake_card_give_back(r.device, r.charged_bytes);
    if (r.kind == FAKE_PINNED)
        free((void *)(uintptr_t)r.start);
    else
        fake_addresses_give_back(r.start, r.size);
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    FAKE_CALL call = fake_enter();
    if (call.code || address == 0)
        return call.code;
    struct fake_range *range = fake_table_find(&fake_allocations, address);
    if (!range || range->start != address)
        return CUDA_ERROR_INVALID_VALUE;
    switch (range->kind) {
    case FAKE_SMALL:
    case FAKE_LARGE:
    case FAKE_MANAGED:
    case FAKE_ASYNC:
        fake_allocation_free(range);
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

void fake_context_free(CUcontext context)
{
    for (int i = fake_allocations.n - 1; i >= 0; i--)
        if (fake_allocations.ranges[i].context == context)
            fake_allocation_free(&fake_allocations.ranges[i]);
    for (int i = fake_registered.n - 1; i >= 0; i--)
        if (fake_registered.ranges[i].context == context)
            fake_table_remove(&fake_registered, &fake_registered.ranges[i]);
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    FAKE_CALL call = fake_enter_context();
    if (!call.code)
        fake_card_info(call.context->device, free_bytes, total_bytes);
    return call.code;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address)
{
    FAKE_CALL call = fake_enter_context();
    if (call.code)
        return call.code;
    const struct fake_range *range = fake_table_find(&fake_allocations, address);
    if (!range)
        range = fake_table_find(&fake_mappings, address);
    if (!range || range->kind == FAKE_ARRAY || range->kind == FAKE_MODULE)
        return CUDA_ERROR_NOT_FOUND;
    if (base)
        *base = range->start;
    if (size)
        *size = range->size;
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr address)
{
    FAKE_CALL call = fake_enter_context();
    if (call.code)
        return call.code;
    const struct fake_range *range = fake_table_find(&fake_allocations, address);
    if (!range)
        range = fake_table_find(&fake_mappings, address);
    if (!value || !range)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)value = range->device;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)value = range->pool;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* ---- memory of the host ---- */

/* Usable by the host. It costs the card nothing before it is touched there, which never happens. */
CUresult cuMemAllocManaged(CUdeviceptr *address, size_t size, unsigned flags)
{
    FAKE_CALL call = fake_enter_context();
    if (call.code)
        return call.code;
    if (!address || size == 0 || flags == 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct fake_range range = {.start = fake_addresses_take(size),
                               .size = size,
                               .kind = FAKE_MANAGED,
                               .device = call.context->device,
                               .context = call.context};
    if (range.start == 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    mprotect((void *)(uintptr_t)range.start, size, PROT_READ | PROT_WRITE);
    fake_table_add(&fake_allocations, &range);
    *address = range.start;
    return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **address, size_t size, unsigned flags)
{
    (void)flags;
    FAKE_CALL call = fake_enter_context();
    if (call.code)
        return call.code;
    if (!address || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    void *memory = aligned_alloc(4096, fake_round_up(size, 4096));
    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    fake_table_add(&fake_allocations, &(struct fake_range){.start = (uintptr_t)memory,
                                                           .size = size,
                                                           .kind = FAKE_PINNED,
                                                           .device = call.context->device,
                                                           .context = call.context});
    *address = memory;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void **address, size_t size)
{
    return cuMemHostAlloc(address, size, 0);
}

CUresult cuMemFreeHost(void *address)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    struct fake_range *range = fake_table_at(&fake_allocations, (uintptr_t)address, FAKE_PINNED);
    if (!range)
        return CUDA_ERROR_INVALID_VALUE;
    fake_allocation_free(range);
    return CUDA_SUCCESS;
}

static bool overlaps(const struct fake_table *t, CUdeviceptr start, size_t size)
{
    int i = fake_table_first(t, start);
    return i < t->n && t->ranges[i].start < start + size;
}

CUresult cuMemHostRegister_v2(void *address, size_t size, unsigned flags)
{
    (void)flags;
    FAKE_CALL call = fake_enter_context();
    if (call.code)
        return call.code;
    if (!address || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUdeviceptr start = (uintptr_t)address;
    if (overlaps(&fake_registered, start, size) || overlaps(&fake_allocations, start, size))
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    fake_table_add(&fake_registered, &(struct fake_range){.start = start,
                                                          .size = size,
                                                          .kind = FAKE_REGISTERED,
                                                          .device = call.context->device,
                                                          .context = call.context});
    return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *address)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    struct fake_range *range = fake_table_at(&fake_registered, (uintptr_t)address, FAKE_REGISTERED);
    if (!range)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    fake_table_remove(&fake_registered, range);
    return CUDA_SUCCESS;
}

/* ---- another process's memory ---- */

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address)
{
    FAKE_CALL call = fake_enter_context();
    if (call.code)
        return call.code;
    const struct fake_range *range = fake_table_find(&fake_allocations, address);
    if (!range || (range->kind != FAKE_SMALL && range->kind != FAKE_LARGE))
        return CUDA_ERROR_INVALID_VALUE;
    struct ipc_handle of = {.magic = ipc_magic,
                            .pid = (uint64_t)getpid(),
                            .address = range->start,
                            .size = range->size,
                            .card = fake_card_number(range->device)};
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &of, sizeof of);
    return CUDA_SUCCESS;
}

/* The allocation of another process that is open here already, or NULL. */
static struct fake_range *find_open(const struct ipc_handle *of)
{
    for (int i = 0; i < fake_allocations.n; i++) {
        struct fake_range *range = &fake_allocations.ranges[i];
        if (range->kind == FAKE_IPC && range->ipc_pid == of->pid &&
            range->ipc_address == of->address)
            return range;
    }
    return NULL;
}

/* The memory is the other process's, and is counted there. As with the real one, a process cannot
 * open what is its own, and what it opens again has the address that it had. */
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags)
{
    FAKE_CALL call = fake_enter_context();
    if (call.code)
        return call.code;
    struct ipc_handle of;
    memcpy(&of, &handle, sizeof of);
    if (of.magic != ipc_magic || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return CUDA_ERROR_INVALID_VALUE;
    if (of.pid == (uint64_t)getpid())
        return CUDA_ERROR_INVALID_CONTEXT;
    struct fake_range *open = find_open(&of);
    if (open) {
        open->n_opened++;
        *address = open->start;
        return CUDA_SUCCESS;
    }
    struct fake_range range = {.start = fake_addresses_take(of.size),
                               .size = of.size,
                               .kind = FAKE_IPC,
                               .device = call.context->device,
                               .context = call.context,
                               .n_opened = 1,
                               .ipc_pid = of.pid,
                               .ipc_address = of.address};
    if (range.start == 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    fake_table_add(&fake_allocations, &range);
    *address = range.start;
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags)
{
    return cuIpcOpenMemHandle_v2(address, handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    struct fake_range *range = fake_table_at(&fake_allocations, address, FAKE_IPC);
    if (!range)
        return CUDA_ERROR_INVALID_VALUE;
    if (--range->n_opened == 0)
        fake_allocation_free(range);
    return CUDA_SUCCESS;
}

/* ---- arrays, code ---- */

/* Of one channel; 0: not one that we know. */
static size_t bytes_of_format(int format)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4;
    default:
        return 0;
    }
}

CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *what)
{
    FAKE_CALL call = fake_enter_context();
    if (call.code)
        return call.code;
    if (!array || !what)
        return CUDA_ERROR_INVALID_VALUE;
    size_t height = what->Height ? what->Height : 1, depth = what->Depth ? what->Depth : 1;
    struct fake_range range = {.size = what->Width * height * depth * what->NumChannels *
                                       bytes_of_format(what->Format),
                               .kind = FAKE_ARRAY,
                               .device = call.context->device,
                               .context = call.context};
    if (range.size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult code = alloc_large(&range);
    if (!code)
        *array = (CUarray)(uintptr_t)range.start;
    return code;
}

CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *what)
{
    if (!what)
        return cuArray3DCreate_v2(array, NULL);
    CUDA_ARRAY3D_DESCRIPTOR of = {.Width = what->Width,
                                  .Height = what->Height,
                                  .Format = what->Format,
                                  .NumChannels = what->NumChannels};
    return cuArray3DCreate_v2(array, &of);
}

static CUresult free_handle(const void *handle, enum fake_kind kind)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    struct fake_range *range = fake_table_at(&fake_allocations, (uintptr_t)handle, kind);
    if (!range)
        return CUDA_ERROR_INVALID_HANDLE;
    fake_allocation_free(range);
    return CUDA_SUCCESS;
}

CUresult cuArrayDestroy(CUarray array)
{
    return free_handle(array, FAKE_ARRAY);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    FAKE_CALL call = fake_enter_context();
    if (call.code)
        return call.code;
    struct fake_range range = {.size = FAKE_MODULE_BYTES,
                               .kind = FAKE_MODULE,
                               .device = call.context->device,
                               .context = call.context};
    if (!module || !image)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult code = alloc_large(&range);
    if (!code)
        *module = (CUmodule)(uintptr_t)range.start;
    return code;
}

CUresult cuModuleUnload(CUmodule module)
{
    return free_handle(module, FAKE_MODULE);
}
