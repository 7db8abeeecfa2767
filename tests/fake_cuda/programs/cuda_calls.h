/* SPDX-License-Identifier: MIT */
/* cuda_calls.h - how the programs of this folder call the driver: CU(cuMemAlloc)(...).
 *
 * That is a call of the import when they are compiled with LINKED, else through a pointer that
 * cuda_ways.c found, in one of the ways that programs in the wild find theirs. */
#ifndef CUDA_CALLS_H
#define CUDA_CALLS_H

#include "fake_cuda_api.h"

/* As cuda.h: the name that one writes is the newest version's. */
#define cuCtxCreate cuCtxCreate_v2
#define cuCtxDestroy cuCtxDestroy_v2
#define cuDevicePrimaryCtxRelease cuDevicePrimaryCtxRelease_v2
#define cuDevicePrimaryCtxReset cuDevicePrimaryCtxReset_v2
#define cuDeviceGetUuid cuDeviceGetUuid_v2
#define cuDeviceTotalMem cuDeviceTotalMem_v2
#define cuStreamDestroy cuStreamDestroy_v2
#define cuMemAlloc cuMemAlloc_v2
#define cuMemAllocPitch cuMemAllocPitch_v2
#define cuMemFree cuMemFree_v2
#define cuMemAllocHost cuMemAllocHost_v2
#define cuMemHostRegister cuMemHostRegister_v2
#define cuMemGetInfo cuMemGetInfo_v2
#define cuMemGetAddressRange cuMemGetAddressRange_v2
#define cuIpcOpenMemHandle cuIpcOpenMemHandle_v2
#define cuArrayCreate cuArrayCreate_v2
#define cuArray3DCreate cuArray3DCreate_v2

/* X(function, the version of CUDA to ask cuGetProcAddress for) */
#define PROGRAM_FUNCTIONS(X)                                                                       \
    X(cuInit, 2000)                                                                                \
    X(cuDeviceGetCount, 2000)                                                                      \
    X(cuDevicePrimaryCtxRetain, 7000)                                                              \
    X(cuDevicePrimaryCtxRelease, 11000)                                                            \
    X(cuDevicePrimaryCtxReset, 11000)                                                              \
    X(cuCtxCreate, 3020)                                                                           \
    X(cuCtxDestroy, 4000)                                                                          \
    X(cuCtxSetCurrent, 4000)                                                                       \
    X(cuCtxSynchronize, 2000)                                                                      \
    X(cuStreamCreate, 2000)                                                                        \
    X(cuStreamDestroy, 4000)                                                                       \
    X(cuStreamSynchronize, 7000)                                                                   \
    X(cuStreamGetCtx, 9020)                                                                        \
    X(cuModuleLoadData, 2000)                                                                      \
    X(cuModuleUnload, 2000)                                                                        \
    X(cuMemAlloc, 3020)                                                                            \
    X(cuMemAllocPitch, 3020)                                                                       \
    X(cuMemFree, 3020)                                                                             \
    X(cuMemAllocManaged, 6000)                                                                     \
    X(cuMemHostAlloc, 2020)                                                                        \
    X(cuMemAllocHost, 3020)                                                                        \
    X(cuMemFreeHost, 2000)                                                                         \
    X(cuMemHostRegister, 6050)                                                                     \
    X(cuMemHostUnregister, 4000)                                                                   \
    X(cuMemGetInfo, 3020)                                                                          \
    X(cuMemGetAddressRange, 3020)                                                                  \
    X(cuIpcGetMemHandle, 4010)                                                                     \
    X(cuIpcOpenMemHandle, 11000)                                                                   \
    X(cuIpcCloseMemHandle, 4010)                                                                   \
    X(cuArrayCreate, 3020)                                                                         \
    X(cuArray3DCreate, 3020)                                                                       \
    X(cuArrayDestroy, 2000)                                                                        \
    X(cuMemAllocAsync, 11020)                                                                      \
    X(cuMemAllocFromPoolAsync, 11020)                                                              \
    X(cuMemFreeAsync, 11020)                                                                       \
    X(cuMemPoolCreate, 11020)                                                                      \
    X(cuMemPoolDestroy, 11020)                                                                     \
    X(cuMemPoolSetAttribute, 11020)                                                                \
    X(cuMemPoolGetAttribute, 11020)                                                                \
    X(cuMemPoolTrimTo, 11020)                                                                      \
    X(cuDeviceGetDefaultMemPool, 11020)                                                            \
    X(cuDeviceGetMemPool, 11020)                                                                   \
    X(cuDeviceSetMemPool, 11020)                                                                   \
    X(cuMemCreate, 10020)                                                                          \
    X(cuMemRelease, 10020)                                                                         \
    X(cuMemAddressReserve, 10020)                                                                  \
    X(cuMemAddressFree, 10020)                                                                     \
    X(cuMemMap, 10020)                                                                             \
    X(cuMemUnmap, 10020)                                                                           \
    X(cuMemSetAccess, 10020)                                                                       \
    X(cuMemRetainAllocationHandle, 11000)                                                          \
    X(cuMemGetAllocationGranularity, 10020)                                                        \
    X(cuMemExportToShareableHandle, 10020)                                                         \
    X(cuMemImportFromShareableHandle, 10020)

#ifdef LINKED
#define CU(function) function
#else
struct cuda_calls {
#define MEMBER(function, version) __typeof__ (&(function))(function);
    PROGRAM_FUNCTIONS(MEMBER)
#undef MEMBER
};
extern struct cuda_calls cuda_calls;
#define CU(function) (cuda_calls.function)
#endif

/* Find the functions in the way of this name; "" is the program's own. Ends the program when there
 * is no such way or no such function. */
void cuda_ways_find(const char *way);

#endif
