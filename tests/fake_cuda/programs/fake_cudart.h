/* SPDX-License-Identifier: MIT */
/* fake_cudart.h - the functions of libcudart.so: as cudart's of the same names. */
#ifndef FAKE_CUDART_H
#define FAKE_CUDART_H

#include <stddef.h>

#include "fake_cuda_api.h"

#pragma GCC visibility push(default)
int cudaSetDevice(int device);
int cudaMalloc(void **address, size_t size);
int cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height);
int cudaMallocManaged(void **address, size_t size, unsigned flags);
int cudaMallocAsync(void **address, size_t size, CUstream stream);
int cudaMallocHost(void **address, size_t size);
int cudaFree(void *address);
int cudaFreeAsync(void *address, CUstream stream);
int cudaFreeHost(void *address);
int cudaDeviceGetDefaultMemPool(CUmemoryPool *pool, int device);
int cudaMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value);
#pragma GCC visibility pop

#endif
