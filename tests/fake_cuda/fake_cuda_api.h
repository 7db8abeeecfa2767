/* SPDX-License-Identifier: MIT */
/* fake_cuda_api.h - the part of NVIDIA's cuda.h that the stand-in libcuda.so.1 and the programs
 * that try it need, declared by us: names, types and numbers are the driver's binary interface.
 *
 * CUDA_FUNCTIONS lists what it exports: the name that cuGetProcAddress is asked for, the symbol,
 * and the version of CUDA that brought it. Of several symbols with one name the newer come later.
 */
#ifndef FAKE_CUDA_API_H
#define FAKE_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUmod_st *CUmodule;
typedef struct CUarray_st *CUarray;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef unsigned long long CUmemGenericAllocationHandle;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
    CUDA_ERROR_NOT_SUPPORTED = 801,
};

enum { /* CUdevice_attribute */
       CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
       CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
       CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
       CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
};

enum { /* CUmemPool_attribute */
       CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
       CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
       CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
       CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
       CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
       CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,
       CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
       CU_MEMPOOL_ATTR_USED_MEM_HIGH,
};

enum { /* CUpointer_attribute */
       CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
       CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17,
};

enum { /* of cuGetProcAddress: flags, then symbolStatus */
       CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 2,
       CU_GET_PROC_ADDRESS_SUCCESS = 0,
       CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
       CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2,
};

enum {
    CU_MEM_ALLOCATION_TYPE_PINNED = 1,
    CU_MEM_LOCATION_TYPE_DEVICE = 1,
    CU_MEM_HANDLE_TYPE_NONE = 0,
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
    CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
    CU_MEM_ATTACH_GLOBAL = 1,
    CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1,
    CU_AD_FORMAT_UNSIGNED_INT8 = 0x01,
    CU_AD_FORMAT_UNSIGNED_INT16 = 0x02,
    CU_AD_FORMAT_UNSIGNED_INT32 = 0x03,
    CU_AD_FORMAT_SIGNED_INT8 = 0x08,
    CU_AD_FORMAT_SIGNED_INT16 = 0x09,
    CU_AD_FORMAT_SIGNED_INT32 = 0x0a,
    CU_AD_FORMAT_HALF = 0x10,
    CU_AD_FORMAT_FLOAT = 0x20,
};

typedef struct {
    char bytes[16];
} CUuuid;

typedef struct {
    char reserved[64];
} CUipcMemHandle;

typedef struct {
    int type;
    int id;
} CUmemLocation;

typedef struct {
    int type;
    int requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType, gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
} CUmemAllocationProp;

typedef struct {
    CUmemLocation location;
    int flags;
} CUmemAccessDesc;

typedef struct {
    int allocType;
    int handleTypes;
    CUmemLocation location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
} CUmemPoolProps;

typedef struct {
    size_t Width, Height;
    int Format;
    unsigned NumChannels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct {
    size_t Width, Height, Depth;
    int Format;
    unsigned NumChannels, Flags;
} CUDA_ARRAY3D_DESCRIPTOR;

_Static_assert(sizeof(CUmemAllocationProp) == 32 && sizeof(CUmemPoolProps) == 88 &&
                   sizeof(CUDA_ARRAY3D_DESCRIPTOR) == 40 && sizeof(CUmemAccessDesc) == 12,
               "as in cuda.h");

/* X(name, symbol, since, parameters) */
#define CUDA_FUNCTIONS_OF_DEVICES(X)                                                               \
    X(cuInit, cuInit, 2000, (unsigned flags))                                                      \
    X(cuDriverGetVersion, cuDriverGetVersion, 2020, (int *version))                                \
    X(cuGetErrorName, cuGetErrorName, 6000, (CUresult code, const char **name))                    \
    X(cuGetErrorString, cuGetErrorString, 6000, (CUresult code, const char **text))                \
    X(cuDeviceGetCount, cuDeviceGetCount, 2000, (int *count))                                      \
    X(cuDeviceGet, cuDeviceGet, 2000, (CUdevice * device, int ordinal))                            \
    X(cuDeviceGetName, cuDeviceGetName, 2000, (char *name, int length, CUdevice device))           \
    X(cuDeviceGetUuid, cuDeviceGetUuid, 9020, (CUuuid * uuid, CUdevice device))                    \
    X(cuDeviceGetUuid, cuDeviceGetUuid_v2, 11040, (CUuuid * uuid, CUdevice device))                \
    X(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, 4010, (char *id, int length, CUdevice device))     \
    X(cuDeviceTotalMem, cuDeviceTotalMem_v2, 3020, (size_t * bytes, CUdevice device))              \
    X(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000,                                            \
      (int *value, int attribute, CUdevice device))                                                \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000,                                    \
      (CUcontext * context, CUdevice device))                                                      \
    X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, 11000, (CUdevice device))           \
    X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, 11000, (CUdevice device))               \
    X(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState, 7000,                                \
      (CUdevice device, unsigned *flags, int *is_active))                                          \
    X(cuCtxCreate, cuCtxCreate_v2, 3020, (CUcontext * context, unsigned flags, CUdevice device))   \
    X(cuCtxCreate, cuCtxCreate_v3, 11040,                                                          \
      (CUcontext * context, void *parameters, int count, unsigned flags, CUdevice device))         \
    X(cuCtxCreate, cuCtxCreate_v4, 12050,                                                          \
      (CUcontext * context, void *parameters, unsigned flags, CUdevice device))                    \
    X(cuCtxDestroy, cuCtxDestroy_v2, 4000, (CUcontext context))                                    \
    X(cuCtxSetCurrent, cuCtxSetCurrent, 4000, (CUcontext context))                                 \
    X(cuCtxGetCurrent, cuCtxGetCurrent, 4000, (CUcontext * context))                               \
    X(cuCtxPushCurrent, cuCtxPushCurrent_v2, 4000, (CUcontext context))                            \
    X(cuCtxPopCurrent, cuCtxPopCurrent_v2, 4000, (CUcontext * context))                            \
    X(cuCtxGetDevice, cuCtxGetDevice, 2000, (CUdevice * device))                                   \
    X(cuCtxSynchronize, cuCtxSynchronize, 2000, (void))                                            \
    X(cuStreamCreate, cuStreamCreate, 2000, (CUstream * stream, unsigned flags))                   \
    X(cuStreamDestroy, cuStreamDestroy_v2, 4000, (CUstream stream))                                \
    X(cuStreamSynchronize, cuStreamSynchronize, 2000, (CUstream stream))                           \
    X(cuStreamGetCtx, cuStreamGetCtx, 9020, (CUstream stream, CUcontext * context))                \
    X(cuModuleLoadData, cuModuleLoadData, 2000, (CUmodule * module, const void *image))            \
    X(cuModuleUnload, cuModuleUnload, 2000, (CUmodule module))

#define CUDA_FUNCTIONS_OF_MEMORY(X)                                                                \
    X(cuMemAlloc, cuMemAlloc_v2, 3020, (CUdeviceptr * address, size_t size))                       \
    X(cuMemAllocPitch, cuMemAllocPitch_v2, 3020,                                                   \
      (CUdeviceptr * address, size_t * pitch, size_t width, size_t height, unsigned element))      \
    X(cuMemFree, cuMemFree_v2, 3020, (CUdeviceptr address))                                        \
    X(cuMemAllocManaged, cuMemAllocManaged, 6000,                                                  \
      (CUdeviceptr * address, size_t size, unsigned flags))                                        \
    X(cuMemHostAlloc, cuMemHostAlloc, 2020, (void **address, size_t size, unsigned flags))         \
    X(cuMemAllocHost, cuMemAllocHost_v2, 3020, (void **address, size_t size))                      \
    X(cuMemFreeHost, cuMemFreeHost, 2000, (void *address))                                         \
    X(cuMemHostRegister, cuMemHostRegister_v2, 6050, (void *address, size_t size, unsigned flags)) \
    X(cuMemHostUnregister, cuMemHostUnregister, 4000, (void *address))                             \
    X(cuMemGetInfo, cuMemGetInfo_v2, 3020, (size_t * free_bytes, size_t * total_bytes))            \
    X(cuMemGetAddressRange, cuMemGetAddressRange_v2, 3020,                                         \
      (CUdeviceptr * base, size_t * size, CUdeviceptr address))                                    \
    X(cuPointerGetAttribute, cuPointerGetAttribute, 4000,                                          \
      (void *value, int attribute, CUdeviceptr address))                                           \
    X(cuIpcGetMemHandle, cuIpcGetMemHandle, 4010, (CUipcMemHandle * handle, CUdeviceptr address))  \
    X(cuIpcOpenMemHandle, cuIpcOpenMemHandle, 4010,                                                \
      (CUdeviceptr * address, CUipcMemHandle handle, unsigned flags))                              \
    X(cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2, 11000,                                            \
      (CUdeviceptr * address, CUipcMemHandle handle, unsigned flags))                              \
    X(cuIpcCloseMemHandle, cuIpcCloseMemHandle, 4010, (CUdeviceptr address))                       \
    X(cuArrayCreate, cuArrayCreate_v2, 3020, (CUarray * array, const CUDA_ARRAY_DESCRIPTOR *what)) \
    X(cuArray3DCreate, cuArray3DCreate_v2, 3020,                                                   \
      (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR *what))                                      \
    X(cuArrayDestroy, cuArrayDestroy, 2000, (CUarray array))

#define CUDA_FUNCTIONS_OF_POOLS(X)                                                                 \
    X(cuMemAllocAsync, cuMemAllocAsync, 11020,                                                     \
      (CUdeviceptr * address, size_t size, CUstream stream))                                       \
    X(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, 11020,                                     \
      (CUdeviceptr * address, size_t size, CUmemoryPool pool, CUstream stream))                    \
    X(cuMemFreeAsync, cuMemFreeAsync, 11020, (CUdeviceptr address, CUstream stream))               \
    X(cuMemPoolCreate, cuMemPoolCreate, 11020, (CUmemoryPool * pool, const CUmemPoolProps *what))  \
    X(cuMemPoolDestroy, cuMemPoolDestroy, 11020, (CUmemoryPool pool))                              \
    X(cuMemPoolSetAttribute, cuMemPoolSetAttribute, 11020,                                         \
      (CUmemoryPool pool, int attribute, void *value))                                             \
    X(cuMemPoolGetAttribute, cuMemPoolGetAttribute, 11020,                                         \
      (CUmemoryPool pool, int attribute, void *value))                                             \
    X(cuMemPoolTrimTo, cuMemPoolTrimTo, 11020, (CUmemoryPool pool, size_t bytes_to_keep))          \
    X(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, 11020,                                 \
      (CUmemoryPool * pool, CUdevice device))                                                      \
    X(cuDeviceGetMemPool, cuDeviceGetMemPool, 11020, (CUmemoryPool * pool, CUdevice device))       \
    X(cuDeviceSetMemPool, cuDeviceSetMemPool, 11020, (CUdevice device, CUmemoryPool pool))

#define CUDA_FUNCTIONS_OF_VMM(X)                                                                   \
    X(cuMemCreate, cuMemCreate, 10020,                                                             \
      (CUmemGenericAllocationHandle * handle, size_t size, const CUmemAllocationProp *what,        \
       unsigned long long flags))                                                                  \
    X(cuMemRelease, cuMemRelease, 10020, (CUmemGenericAllocationHandle handle))                    \
    X(cuMemAddressReserve, cuMemAddressReserve, 10020,                                             \
      (CUdeviceptr * address, size_t size, size_t alignment, CUdeviceptr hint,                     \
       unsigned long long flags))                                                                  \
    X(cuMemAddressFree, cuMemAddressFree, 10020, (CUdeviceptr address, size_t size))               \
    X(cuMemMap, cuMemMap, 10020,                                                                   \
      (CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,       \
       unsigned long long flags))                                                                  \
    X(cuMemUnmap, cuMemUnmap, 10020, (CUdeviceptr address, size_t size))                           \
    X(cuMemSetAccess, cuMemSetAccess, 10020,                                                       \
      (CUdeviceptr address, size_t size, const CUmemAccessDesc *whose, size_t count))              \
    X(cuMemRetainAllocationHandle, cuMemRetainAllocationHandle, 11000,                             \
      (CUmemGenericAllocationHandle * handle, void *address))                                      \
    X(cuMemGetAllocationGranularity, cuMemGetAllocationGranularity, 10020,                         \
      (size_t * granularity, const CUmemAllocationProp *what, int option))                         \
    X(cuMemExportToShareableHandle, cuMemExportToShareableHandle, 10020,                           \
      (void *shareable, CUmemGenericAllocationHandle handle, int type, unsigned long long flags))  \
    X(cuMemImportFromShareableHandle, cuMemImportFromShareableHandle, 10020,                       \
      (CUmemGenericAllocationHandle * handle, void *shareable, int type))

#define CUDA_FUNCTIONS(X)                                                                          \
    CUDA_FUNCTIONS_OF_DEVICES(X)                                                                   \
    CUDA_FUNCTIONS_OF_MEMORY(X)                                                                    \
    CUDA_FUNCTIONS_OF_POOLS(X)                                                                     \
    CUDA_FUNCTIONS_OF_VMM(X)                                                                       \
    X(cuGetProcAddress, cuGetProcAddress, 11030,                                                   \
      (const char *name, void **function, int version, uint64_t flags))                            \
    X(cuGetProcAddress, cuGetProcAddress_v2, 12000,                                                \
      (const char *name, void **function, int version, uint64_t flags, int *status))

/* Those that take a stream have a twin each, whose stream 0 is the thread's own. */
#define CUDA_FUNCTIONS_PER_THREAD(X)                                                               \
    X(cuMemAllocAsync, cuMemAllocAsync_ptsz, 11020,                                                \
      (CUdeviceptr * address, size_t size, CUstream stream))                                       \
    X(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz, 11020,                                \
      (CUdeviceptr * address, size_t size, CUmemoryPool pool, CUstream stream))                    \
    X(cuMemFreeAsync, cuMemFreeAsync_ptsz, 11020, (CUdeviceptr address, CUstream stream))          \
    X(cuStreamSynchronize, cuStreamSynchronize_ptsz, 7000, (CUstream stream))

#define CUDA_DECLARE(name, symbol, since, parameters)                                              \
    __attribute__((visibility("default"))) CUresult symbol parameters;
CUDA_FUNCTIONS(CUDA_DECLARE)
CUDA_FUNCTIONS_PER_THREAD(CUDA_DECLARE)

#endif
