/* SPDX-License-Identifier: MIT */
/* record/driver/driver_calls.h - what the files driver*.c share: the part of the driver's binary
 * interface that we use, the functions that we stand in front of, and the notes that are made when
 * they return.
 *
 * Names, versions and arguments are those of NVIDIA's cuda.h, declared here by us: a CUresult is an
 * int, a CUdeviceptr has 64 bits, handles are pointers. */
#ifndef TMK_RECORD_DRIVER_CALLS_H
#define TMK_RECORD_DRIVER_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/segments.h"

enum {
    TMK_CU_SUCCESS = 0,
    TMK_CU_OUT_OF_MEMORY = 2,
    TMK_CU_NOT_INITIALIZED = 3,
    TMK_CU_PER_THREAD_STREAM = 2,   /* a flag of cuGetProcAddress() */
    TMK_CU_POOL_RESERVED_NOW = 5,   /* an attribute of a pool */
    TMK_CU_POINTER_DEVICE = 9,      /* an attribute of a pointer */
    TMK_CU_LAST_DEFAULT_STREAM = 2, /* handles up to here are names of the default stream */
    TMK_CU_LOCATION_DEVICE = 1,
};

typedef uint64_t tmk_cu_pointer; /* an address in the device's memory */
typedef void *tmk_cu_handle;

typedef struct {
    char bytes[64];
} tmk_cu_ipc;

struct tmk_cu_location {
    int type;
    int id;
};

struct tmk_cu_memory_properties { /* the beginning of CUmemAllocationProp */
    int type;
    int handle_types;
    struct tmk_cu_location location;
};

struct tmk_cu_array_2d { /* CUDA_ARRAY_DESCRIPTOR */
    size_t width, height;
    int format;
    unsigned n_channels;
};

struct tmk_cu_array_3d { /* CUDA_ARRAY3D_DESCRIPTOR */
    size_t width, height, depth;
    int format;
    unsigned n_channels;
    unsigned flags;
};

/* X(symbol, the name that cuGetProcAddress() knows it by, the version of CUDA that introduced it,
 * whether it is for programs with a default stream per thread) */
#define TMK_CALLS_MEMORY(X)                                                                        \
    X(cuMemAlloc_v2, "cuMemAlloc", 3020, 0)                                                        \
    X(cuMemAllocPitch_v2, "cuMemAllocPitch", 3020, 0)                                              \
    X(cuMemAllocManaged, "cuMemAllocManaged", 6000, 0)                                             \
    X(cuMemFree_v2, "cuMemFree", 3020, 0)                                                          \
    X(cuMemHostAlloc, "cuMemHostAlloc", 2020, 0)                                                   \
    X(cuMemAllocHost_v2, "cuMemAllocHost", 3020, 0)                                                \
    X(cuMemFreeHost, "cuMemFreeHost", 2000, 0)                                                     \
    X(cuMemHostRegister_v2, "cuMemHostRegister", 6050, 0)                                          \
    X(cuMemHostUnregister, "cuMemHostUnregister", 4000, 0)                                         \
    X(cuArrayCreate_v2, "cuArrayCreate", 3020, 0)                                                  \
    X(cuArray3DCreate_v2, "cuArray3DCreate", 3020, 0)                                              \
    X(cuArrayDestroy, "cuArrayDestroy", 2000, 0)                                                   \
    X(cuIpcOpenMemHandle, "cuIpcOpenMemHandle", 4010, 0)                                           \
    X(cuIpcOpenMemHandle_v2, "cuIpcOpenMemHandle", 11000, 0)                                       \
    X(cuIpcCloseMemHandle, "cuIpcCloseMemHandle", 4010, 0)                                         \
    X(cuCtxDestroy_v2, "cuCtxDestroy", 4000, 0)                                                    \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, 0)                               \
    X(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 11000, 0)                         \
    X(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", 11000, 0)
#define TMK_CALLS_POOLS(X)                                                                         \
    X(cuMemAllocAsync, "cuMemAllocAsync", 11020, 0)                                                \
    X(cuMemAllocAsync_ptsz, "cuMemAllocAsync", 11020, 1)                                           \
    X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020, 0)                                \
    X(cuMemAllocFromPoolAsync_ptsz, "cuMemAllocFromPoolAsync", 11020, 1)                           \
    X(cuMemFreeAsync, "cuMemFreeAsync", 11020, 0)                                                  \
    X(cuMemFreeAsync_ptsz, "cuMemFreeAsync", 11020, 1)                                             \
    X(cuMemPoolTrimTo, "cuMemPoolTrimTo", 11020, 0)                                                \
    X(cuMemPoolGetAttribute, "cuMemPoolGetAttribute", 11020, 0)                                    \
    X(cuMemPoolDestroy, "cuMemPoolDestroy", 11020, 0)                                              \
    X(cuMemCreate, "cuMemCreate", 10020, 0)                                                        \
    X(cuMemRelease, "cuMemRelease", 10020, 0)                                                      \
    X(cuMemMap, "cuMemMap", 10020, 0)                                                              \
    X(cuMemUnmap, "cuMemUnmap", 10020, 0)                                                          \
    X(cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle", 11000, 0)                        \
    X(cuMemImportFromShareableHandle, "cuMemImportFromShareableHandle", 10020, 0)
#define TMK_CALLS_PROC(X)                                                                          \
    X(cuGetProcAddress, "cuGetProcAddress", 11030, 0)                                              \
    X(cuGetProcAddress_v2, "cuGetProcAddress", 12000, 0)
#define TMK_CALLS(X) TMK_CALLS_MEMORY(X) TMK_CALLS_POOLS(X) TMK_CALLS_PROC(X)

enum tmk_driver_call {
#define X(symbol, name, version, per_thread) TMK_CALL_##symbol,
    TMK_CALLS(X)
#undef X
        TMK_N_CALLS,
};

/* Our function for each of them. Its own name leads to ours even where another library defines the
 * driver's name, too. */
int tmk_cuMemAlloc_v2(tmk_cu_pointer *ret, size_t n);
int tmk_cuMemAllocPitch_v2(tmk_cu_pointer *ret, size_t *pitch, size_t width, size_t height,
                           unsigned element);
int tmk_cuMemAllocManaged(tmk_cu_pointer *ret, size_t n, unsigned flags);
int tmk_cuMemFree_v2(tmk_cu_pointer p);
int tmk_cuMemHostAlloc(void **ret, size_t n, unsigned flags);
int tmk_cuMemAllocHost_v2(void **ret, size_t n);
int tmk_cuMemFreeHost(void *p);
int tmk_cuMemHostRegister_v2(void *p, size_t n, unsigned flags);
int tmk_cuMemHostUnregister(void *p);
int tmk_cuMemAllocAsync(tmk_cu_pointer *ret, size_t n, tmk_cu_handle stream);
int tmk_cuMemAllocAsync_ptsz(tmk_cu_pointer *ret, size_t n, tmk_cu_handle stream);
int tmk_cuMemAllocFromPoolAsync(tmk_cu_pointer *ret, size_t n, tmk_cu_handle pool,
                                tmk_cu_handle stream);
int tmk_cuMemAllocFromPoolAsync_ptsz(tmk_cu_pointer *ret, size_t n, tmk_cu_handle pool,
                                     tmk_cu_handle stream);
int tmk_cuMemFreeAsync(tmk_cu_pointer p, tmk_cu_handle stream);
int tmk_cuMemFreeAsync_ptsz(tmk_cu_pointer p, tmk_cu_handle stream);
int tmk_cuMemPoolTrimTo(tmk_cu_handle pool, size_t keep);
int tmk_cuMemPoolGetAttribute(tmk_cu_handle pool, int attribute, void *ret);
int tmk_cuMemPoolDestroy(tmk_cu_handle pool);
int tmk_cuMemCreate(uint64_t *ret, size_t n, const struct tmk_cu_memory_properties *properties,
                    unsigned long long flags);
int tmk_cuMemRelease(uint64_t memory);
int tmk_cuMemMap(tmk_cu_pointer p, size_t n, size_t offset, uint64_t memory,
                 unsigned long long flags);
int tmk_cuMemUnmap(tmk_cu_pointer p, size_t n);
int tmk_cuMemRetainAllocationHandle(uint64_t *ret, void *p);
int tmk_cuMemImportFromShareableHandle(uint64_t *ret, void *from, int type);
int tmk_cuArrayCreate_v2(tmk_cu_handle *ret, const struct tmk_cu_array_2d *what);
int tmk_cuArray3DCreate_v2(tmk_cu_handle *ret, const struct tmk_cu_array_3d *what);
int tmk_cuArrayDestroy(tmk_cu_handle array);
int tmk_cuIpcOpenMemHandle(tmk_cu_pointer *ret, tmk_cu_ipc from, unsigned flags);
int tmk_cuIpcOpenMemHandle_v2(tmk_cu_pointer *ret, tmk_cu_ipc from, unsigned flags);
int tmk_cuIpcCloseMemHandle(tmk_cu_pointer p);
int tmk_cuCtxDestroy_v2(tmk_cu_handle context);
int tmk_cuDevicePrimaryCtxRetain(tmk_cu_handle *ret, int device);
int tmk_cuDevicePrimaryCtxRelease_v2(int device);
int tmk_cuDevicePrimaryCtxReset_v2(int device);
int tmk_cuGetProcAddress(const char *name, void **ret, int version, uint64_t flags);
int tmk_cuGetProcAddress_v2(const char *name, void **ret, int version, uint64_t flags,
                            int *ret_status);

/* Define it under the driver's name too: programs that are linked with the driver find these
 * first. */
#define TMK_DRIVER_EXPORT(symbol, name, version, per_thread)                                       \
    extern __typeof__(tmk_##symbol)(symbol)                                                        \
        __attribute__((alias("tmk_" #symbol), visibility("default")));

/* Return the driver's function, NULL when no driver is loaded or it has none. */
void *tmk_driver_real(enum tmk_driver_call call);

/* Call the driver's function. A program may find ours by its name where no driver is loaded: it
 * then gets the driver's own error for that. */
#define TMK_DRIVER(symbol, ...)                                                                    \
    __extension__({                                                                                \
        __typeof__(tmk_##symbol) *real_ =                                                          \
            (__typeof__(tmk_##symbol) *)tmk_driver_real(TMK_CALL_##symbol);                        \
        real_ ? real_(__VA_ARGS__) : TMK_CU_NOT_INITIALIZED;                                       \
    })

/* Functions of the driver that we call ourselves; NULL where it has none. */
enum tmk_driver_question {
    TMK_ASK_DEVICE,
    TMK_ASK_POINTER,
    TMK_ASK_CONTEXT,
    TMK_ASK_POOL_OF_DEVICE,
    TMK_ASK_POOL_ATTRIBUTE,
    TMK_ASK_RANGE,
    TMK_ASK_FREE,
    TMK_ASK_PRIMARY_STATE,
    TMK_ASK_CAPTURING,
    TMK_N_QUESTIONS,
};
void *tmk_driver_ask(enum tmk_driver_question which);
/* The calling thread's current device. */
uint16_t tmk_driver_device(void);

/* Note that the driver has run out of memory, and what was free. `device` -1: the host's memory.
 * Returns rc. */
int tmk_driver_refused(int rc, uint64_t size, int device);
/* When the driver has failed to free, bring back what was noted as gone. Returns rc. */
int tmk_driver_ended(int rc, bool was_there, const struct tmk_driver_segment *gone);
/* The same for a pointer of any kind. Note also if a pool has shrunk by the free. */
int tmk_driver_ended_pointer(int rc, bool was_there, const struct tmk_driver_segment *gone);

#endif
