/* SPDX-License-Identifier: MIT */
/* fake_cuda_vmm.c - addresses and memory apart: memory is created, has no address, and is mapped
 * where addresses were reserved. It lives until it is released as often as somebody got its handle,
 * and unmapped everywhere. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_cuda.h"

struct fake_physical { /* its address is the handle */
    size_t size;
    CUdevice device;
    int n_handles, n_mappings;
    bool is_charged; /* not another process's */
    struct fake_physical *next;
};

struct shared_memory { /* what the file behind an exported handle has in it */
    uint64_t pid, handle, size, device;
};

static struct fake_physical *physicals;

static struct fake_physical *find_physical(CUmemGenericAllocationHandle handle)
{
    struct fake_physical *p = physicals;
    while (p && (uintptr_t)p != handle)
        p = p->next;
    return p && p->n_handles > 0 ? p : NULL;
}

static void end_if_done(struct fake_physical *physical)
{
    if (physical->n_handles > 0 || physical->n_mappings > 0)
        return;
    struct fake_physical **link = &physicals;
    while (*link != physical)
        link = &(*link)->next;
    *link = physical->next;
    if (physical->is_charged)
        fake_card_give_back(physical->device, physical->size);
    free(physical);
}

static struct fake_physical *add_physical(size_t size, CUdevice device, bool is_charged)
{
    struct fake_physical *made = calloc(1, sizeof *made);
    *made = (struct fake_physical){.size = size,
                                   .device = device,
                                   .n_handles = 1,
                                   .is_charged = is_charged,
                                   .next = physicals};
    physicals = made;
    return made;
}

static bool is_whole(size_t bytes)
{
    return bytes > 0 && bytes % FAKE_GRANULE_BYTES == 0;
}

/* ---- memory ---- */

static CUresult check_properties(const CUmemAllocationProp *what)
{
    if (!what || what->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        what->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    return fake_is_device(what->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *what,
                                       int option)
{
    (void)option;
    FAKE_CALL call = fake_enter();
    CUresult code = call.code ? call.code : check_properties(what);
    if (!code)
        *granularity = FAKE_GRANULE_BYTES;
    return code;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                     const CUmemAllocationProp *what, unsigned long long flags)
{
    FAKE_CALL call = fake_enter();
    CUresult code = call.code ? call.code : check_properties(what);
    if (!code && (!handle || !is_whole(size) || flags))
        code = CUDA_ERROR_INVALID_VALUE;
    if (!code)
        code = fake_card_take(what->location.id, size);
    if (!code)
        *handle = (uintptr_t)add_physical(size, what->location.id, true);
    return code;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    struct fake_physical *physical = find_physical(handle);
    if (!physical)
        return CUDA_ERROR_INVALID_VALUE;
    physical->n_handles--;
    end_if_done(physical);
    return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    const struct fake_range *mapping = fake_table_find(&fake_mappings, (uintptr_t)address);
    if (!mapping)
        return CUDA_ERROR_INVALID_VALUE;
    mapping->physical->n_handles++;
    *handle = (uintptr_t)mapping->physical;
    return CUDA_SUCCESS;
}

/* A file of which only the number of the memory is read. */
CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                      int type, unsigned long long flags)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    const struct fake_physical *physical = find_physical(handle);
    if (!physical || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || flags)
        return CUDA_ERROR_INVALID_VALUE;
    struct shared_memory memory = {.pid = (uint64_t)getpid(),
                                   .handle = handle,
                                   .size = physical->size,
                                   .device = (uint64_t)physical->device};
    int fd = memfd_create("fake_cuda", 0);
    if (fd < 0 || write(fd, &memory, sizeof memory) != sizeof memory)
        return CUDA_ERROR_NOT_SUPPORTED;
    *(int *)shareable = fd;
    return CUDA_SUCCESS;
}

/* Memory of another process is counted there. */
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                        int type)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    struct shared_memory memory;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        pread((int)(intptr_t)shareable, &memory, sizeof memory, 0) != sizeof memory)
        return CUDA_ERROR_INVALID_VALUE;
    struct fake_physical *own =
        memory.pid == (uint64_t)getpid() ? find_physical(memory.handle) : NULL;
    if (own)
        own->n_handles++;
    else
        own = add_physical(memory.size, (CUdevice)memory.device, false);
    *handle = (uintptr_t)own;
    return CUDA_SUCCESS;
}

/* ---- addresses ---- */

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr hint,
                             unsigned long long flags)
{
    (void)hint;
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    if (!address || !is_whole(size) || alignment > FAKE_GRANULE_BYTES || flags)
        return CUDA_ERROR_INVALID_VALUE;
    struct fake_range range = {
        .start = fake_addresses_take(size), .size = size, .kind = FAKE_RESERVED};
    if (range.start == 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    fake_table_add(&fake_reserved, &range);
    *address = range.start;
    return CUDA_SUCCESS;
}

/* The first mapping in the range, or NULL. */
static struct fake_range *first_mapping(CUdeviceptr start, size_t size)
{
    int i = fake_table_first(&fake_mappings, start);
    return i < fake_mappings.n && fake_mappings.ranges[i].start < start + size
               ? &fake_mappings.ranges[i]
               : NULL;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t size)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    const struct fake_range *range = fake_table_at(&fake_reserved, address, FAKE_RESERVED);
    if (!range || range->size != size || first_mapping(address, size))
        return CUDA_ERROR_INVALID_VALUE;
    fake_table_remove(&fake_reserved, range);
    fake_addresses_give_back(address, size);
    return CUDA_SUCCESS;
}

/* ---- one on the other ---- */

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    struct fake_physical *physical = find_physical(handle);
    const struct fake_range *in = fake_table_find(&fake_reserved, address);
    if (!physical || !is_whole(size) || size > physical->size || offset || flags || !in ||
        address % FAKE_GRANULE_BYTES || in->start + in->size - address < size ||
        first_mapping(address, size))
        return CUDA_ERROR_INVALID_VALUE;
    physical->n_mappings++;
    fake_table_add(&fake_mappings, &(struct fake_range){.start = address,
                                                        .size = size,
                                                        .kind = FAKE_MAPPING,
                                                        .device = physical->device,
                                                        .physical = physical});
    return CUDA_SUCCESS;
}

/* Does the range consist of whole mappings without a hole? */
static bool is_mapped(CUdeviceptr address, size_t size)
{
    CUdeviceptr at = address;
    while (at < address + size) {
        const struct fake_range *mapping = fake_table_at(&fake_mappings, at, FAKE_MAPPING);
        if (!mapping)
            return false;
        at += mapping->size;
    }
    return size > 0 && at == address + size;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    if (!is_mapped(address, size))
        return CUDA_ERROR_INVALID_VALUE;
    struct fake_range *mapping;
    while ((mapping = first_mapping(address, size))) {
        struct fake_physical *physical = mapping->physical;
        fake_table_remove(&fake_mappings, mapping);
        physical->n_mappings--;
        end_if_done(physical);
    }
    return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *whose,
                        size_t count)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    return whose && count > 0 && is_mapped(address, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
