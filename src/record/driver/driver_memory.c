/* SPDX-License-Identifier: MIT */
/* record/driver/driver_memory.c - see driver.h: device memory, host memory, memory of other
 * processes, and contexts, with which all of it goes. */
#include <stdatomic.h>

#include "record/core/lane.h"
#include "record/core/packing.h"
#include "record/core/recorder.h"
#include "record/driver/driver_calls.h"
#include "record/driver/driver_changes.h"
#include "record/driver/driver_table.h"
#include "record/python/pystack.h"
#include "tidemark/tidemark.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/segments.h"

enum { MAX_DEVICES = TMK_DRIVER_DEVICES };

/* ---- what came of it ---- */

/* Record what was free on the device when an allocation failed. The driver answers for the thread's
 * current device only. */
static void note_free_memory(struct tmk_lane *lane, int device)
{
    int (*ask)(size_t * free, size_t * total) =
        (int (*)(size_t *, size_t *))tmk_driver_ask(TMK_ASK_FREE);
    size_t n_free = 0, n_total = 0;
    if (device != tmk_driver_device() || !ask || ask(&n_free, &n_total) != TMK_CU_SUCCESS ||
        n_free > n_total)
        return;
    struct tmk_sample_body sample = {.used_bytes = n_total - n_free,
                                     .total_bytes = n_total,
                                     .own_bytes = UINT64_MAX,
                                     .others_bytes = UINT64_MAX};
    tmk_lane_put_text(lane, TMK_KIND_SAMPLE, tmk_cuda_device((unsigned)device), 0, &sample,
                      sizeof sample);
}

int tmk_driver_refused(int rc, uint64_t size, int device)
{
    struct tmk_lane *lane = rc == TMK_CU_OUT_OF_MEMORY ? tmk_lane_enter() : NULL;
    if (!lane)
        return rc;
    uint16_t full = device < 0 ? TIDEMARK_HOST : tmk_cuda_device((unsigned)device);
    if (device >= 0)
        note_free_memory(lane, device);
    tmk_recorder_count_oom();
    tmk_lane_put(lane, TMK_KIND_OOM, full | TMK_OOM_OF_DRIVER, tmk_pystack_native_id(lane), size,
                 0);
    tmk_lane_leave(lane);
    tmk_packing_hurry();
    return rc;
}

static uint64_t current_context(void)
{
    int (*ask)(tmk_cu_handle * ret) = (int (*)(tmk_cu_handle *))tmk_driver_ask(TMK_ASK_CONTEXT);
    tmk_cu_handle context = NULL;
    return ask && ask(&context) == TMK_CU_SUCCESS ? (uintptr_t)context : 0;
}

static int note_allocation(int rc, unsigned kind, uint64_t address, uint64_t size)
{
    if (rc != TMK_CU_SUCCESS)
        return tmk_driver_refused(rc, size,
                                  tmk_segment_is_of_host(kind) ? -1 : tmk_driver_device());
    tmk_driver_table_begin(&(struct tmk_driver_segment){.address = address,
                                                        .size_bytes = size,
                                                        .owner = current_context(),
                                                        .device = tmk_driver_device(),
                                                        .kind = (uint8_t)kind});
    return rc;
}

int tmk_driver_ended(int rc, bool was_there, const struct tmk_driver_segment *gone)
{
    if (rc != TMK_CU_SUCCESS && was_there)
        tmk_driver_table_begin(gone);
    return rc;
}

/* ---- memory of the device ---- */

int tmk_cuMemAlloc_v2(tmk_cu_pointer *ret, size_t n)
{
    TMK_IN_CALL;
    int rc = TMK_DRIVER(cuMemAlloc_v2, ret, n);
    return note_allocation(rc, TMK_SEGMENT_DEVICE, rc == TMK_CU_SUCCESS ? *ret : 0, n);
}

int tmk_cuMemAllocPitch_v2(tmk_cu_pointer *ret, size_t *pitch, size_t width, size_t height,
                           unsigned element)
{
    TMK_IN_CALL;
    int rc = TMK_DRIVER(cuMemAllocPitch_v2, ret, pitch, width, height, element);
    size_t row = rc == TMK_CU_SUCCESS ? *pitch : width;
    return note_allocation(rc, TMK_SEGMENT_DEVICE, rc == TMK_CU_SUCCESS ? *ret : 0, row * height);
}

int tmk_cuMemAllocManaged(tmk_cu_pointer *ret, size_t n, unsigned flags)
{
    int rc = TMK_DRIVER(cuMemAllocManaged, ret, n, flags);
    return note_allocation(rc, TMK_SEGMENT_MANAGED, rc == TMK_CU_SUCCESS ? *ret : 0, n);
}

int tmk_cuMemFree_v2(tmk_cu_pointer p)
{
    struct tmk_driver_segment gone;
    TMK_IN_CALL;
    bool was_there = tmk_driver_table_end_pointer(p, &gone);
    return tmk_driver_ended_pointer(TMK_DRIVER(cuMemFree_v2, p), was_there, &gone);
}

/* 0: not known. */
static uint64_t element_bytes(int format)
{
    switch (format) {
    case 0x02: /* 16 bits */
    case 0x09:
    case 0x10:
        return 2;
    case 0x03: /* 32 bits */
    case 0x0a:
    case 0x20:
        return 4;
    case 0x01: /* 8 bits */
    case 0x08:
        return 1;
    default:
        return 0;
    }
}

/* True for arrays that get memory later, by mappings. */
static bool has_no_memory(unsigned flags)
{
    enum { SPARSE = 0x40, DEFERRED_MAPPING = 0x80 };
    return (flags & (SPARSE | DEFERRED_MAPPING)) != 0;
}

static uint64_t array_bytes(size_t width, size_t height, size_t depth, unsigned n_channels,
                            int format)
{
    return (uint64_t)width * (height ? height : 1) * (depth ? depth : 1) * n_channels *
           element_bytes(format);
}

int tmk_cuArrayCreate_v2(tmk_cu_handle *ret, const struct tmk_cu_array_2d *what)
{
    TMK_IN_CALL;
    int rc = TMK_DRIVER(cuArrayCreate_v2, ret, what);
    if (!what)
        return rc;
    return note_allocation(
        rc, TMK_SEGMENT_ARRAY, rc == TMK_CU_SUCCESS ? (uintptr_t)*ret : 0,
        array_bytes(what->width, what->height, 0, what->n_channels, what->format));
}

int tmk_cuArray3DCreate_v2(tmk_cu_handle *ret, const struct tmk_cu_array_3d *what)
{
    TMK_IN_CALL;
    int rc = TMK_DRIVER(cuArray3DCreate_v2, ret, what);
    if (!what || has_no_memory(what->flags))
        return rc;
    return note_allocation(
        rc, TMK_SEGMENT_ARRAY, rc == TMK_CU_SUCCESS ? (uintptr_t)*ret : 0,
        array_bytes(what->width, what->height, what->depth, what->n_channels, what->format));
}

int tmk_cuArrayDestroy(tmk_cu_handle array)
{
    TMK_IN_CALL;
    struct tmk_driver_segment gone;
    bool was_there = tmk_driver_table_end(TMK_SEGMENT_ARRAY, (uintptr_t)array, &gone);
    return tmk_driver_ended(TMK_DRIVER(cuArrayDestroy, array), was_there, &gone);
}

/* ---- memory of the host ---- */

int tmk_cuMemHostAlloc(void **ret, size_t n, unsigned flags)
{
    int rc = TMK_DRIVER(cuMemHostAlloc, ret, n, flags);
    return note_allocation(rc, TMK_SEGMENT_PINNED, rc == TMK_CU_SUCCESS ? (uintptr_t)*ret : 0, n);
}

int tmk_cuMemAllocHost_v2(void **ret, size_t n)
{
    int rc = TMK_DRIVER(cuMemAllocHost_v2, ret, n);
    return note_allocation(rc, TMK_SEGMENT_PINNED, rc == TMK_CU_SUCCESS ? (uintptr_t)*ret : 0, n);
}

int tmk_cuMemFreeHost(void *p)
{
    struct tmk_driver_segment gone;
    bool was_there = tmk_driver_table_end(TMK_SEGMENT_PINNED, (uintptr_t)p, &gone);
    return tmk_driver_ended(TMK_DRIVER(cuMemFreeHost, p), was_there, &gone);
}

int tmk_cuMemHostRegister_v2(void *p, size_t n, unsigned flags)
{
    return note_allocation(TMK_DRIVER(cuMemHostRegister_v2, p, n, flags), TMK_SEGMENT_REGISTERED,
                           (uintptr_t)p, n);
}

int tmk_cuMemHostUnregister(void *p)
{
    struct tmk_driver_segment gone;
    bool was_there = tmk_driver_table_end(TMK_SEGMENT_REGISTERED, (uintptr_t)p, &gone);
    return tmk_driver_ended(TMK_DRIVER(cuMemHostUnregister, p), was_there, &gone);
}

/* ---- other processes' memory ---- */

static int noted_ipc(int rc, const tmk_cu_pointer *p)
{
    int (*ask)(tmk_cu_pointer * base, size_t * n, tmk_cu_pointer p) =
        (int (*)(tmk_cu_pointer *, size_t *, tmk_cu_pointer))tmk_driver_ask(TMK_ASK_RANGE);
    tmk_cu_pointer base = 0;
    size_t n = 0;
    if (rc == TMK_CU_SUCCESS && ask)
        ask(&base, &n, *p);
    return rc == TMK_CU_SUCCESS ? note_allocation(rc, TMK_SEGMENT_IPC, *p, n) : rc;
}

int tmk_cuIpcOpenMemHandle(tmk_cu_pointer *ret, tmk_cu_ipc from, unsigned flags)
{
    return noted_ipc(TMK_DRIVER(cuIpcOpenMemHandle, ret, from, flags), ret);
}

int tmk_cuIpcOpenMemHandle_v2(tmk_cu_pointer *ret, tmk_cu_ipc from, unsigned flags)
{
    return noted_ipc(TMK_DRIVER(cuIpcOpenMemHandle_v2, ret, from, flags), ret);
}

int tmk_cuIpcCloseMemHandle(tmk_cu_pointer p)
{
    struct tmk_driver_segment gone;
    bool was_there = tmk_driver_table_end(TMK_SEGMENT_IPC, p, &gone);
    return tmk_driver_ended(TMK_DRIVER(cuIpcCloseMemHandle, p), was_there, &gone);
}

/* ---- contexts ---- */

int tmk_cuCtxDestroy_v2(tmk_cu_handle context)
{
    TMK_IN_CALL;
    tmk_driver_table_end_context((uintptr_t)context); /* before another may have its handle */
    return TMK_DRIVER(cuCtxDestroy_v2, context);
}

/* The contexts that CUDA's runtime uses, by device. */
static _Atomic uintptr_t primary[MAX_DEVICES];

int tmk_cuDevicePrimaryCtxRetain(tmk_cu_handle *ret, int device)
{
    int rc = TMK_DRIVER(cuDevicePrimaryCtxRetain, ret, device);
    if (rc == TMK_CU_SUCCESS && device >= 0 && device < MAX_DEVICES)
        atomic_store(&primary[device], (uintptr_t)*ret);
    return rc;
}

static void end_primary(int device)
{
    if (device >= 0 && device < MAX_DEVICES)
        tmk_driver_table_end_device((uint16_t)device, atomic_load(&primary[device]));
}

/* The last release ends the context. */
int tmk_cuDevicePrimaryCtxRelease_v2(int device)
{
    TMK_IN_CALL;
    int (*ask)(int device, unsigned *flags, int *is_active) =
        (int (*)(int, unsigned *, int *))tmk_driver_ask(TMK_ASK_PRIMARY_STATE);
    unsigned flags;
    int is_active = 1;
    int rc = TMK_DRIVER(cuDevicePrimaryCtxRelease_v2, device);
    if (rc == TMK_CU_SUCCESS && ask && ask(device, &flags, &is_active) == TMK_CU_SUCCESS &&
        !is_active)
        end_primary(device);
    return rc;
}

int tmk_cuDevicePrimaryCtxReset_v2(int device)
{
    TMK_IN_CALL;
    int rc = TMK_DRIVER(cuDevicePrimaryCtxReset_v2, device);
    if (rc == TMK_CU_SUCCESS)
        end_primary(device);
    return rc;
}

TMK_CALLS_MEMORY(TMK_DRIVER_EXPORT)
