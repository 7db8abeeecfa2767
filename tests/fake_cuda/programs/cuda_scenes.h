/* SPDX-License-Identifier: MIT */
/* cuda_scenes.h - what the programs do with the driver, a function each. */
#ifndef CUDA_SCENES_H
#define CUDA_SCENES_H

#include <stddef.h>
#include <stdint.h>

#include "cuda_calls.h"

#define KIB (1ull << 10)
#define MIB (1ull << 20)
#define GIB (1ull << 30)

/* Start the driver and make the device's primary context the thread's. */
void scene_start(int device);

/* An allocation, listed. */
CUdeviceptr scene_alloc(int device, size_t size);
void scene_free(CUdeviceptr address);
CUdeviceptr scene_alloc_async(int device, size_t size, CUmemoryPool pool, CUstream stream);
void scene_free_async(CUdeviceptr address, CUstream stream);
CUmemGenericAllocationHandle scene_create(int device, size_t size);
void scene_map(int device, CUdeviceptr address, size_t size, CUmemGenericAllocationHandle handle);
void scene_unmap(CUdeviceptr address, size_t size);
/* List how much the pool has reserved now. */
void scene_note_pool(int device, CUmemoryPool pool);

void scene_families(void); /* every function that allocates, once or twice */
void scene_threads(void);  /* all devices, two threads each */
void scene_race(void);     /* one device, many threads */
void scene_streams(void);  /* a stream of another device */
void scene_hold(void);     /* families, and then it waits */
void scene_fork(void);     /* a child, and what that executes */
void scene_full(void);     /* until the card is full; then on */
void scene_vmm(void);      /* as torch's expandable segments */
void scene_pools(void);    /* thresholds, trimming, destroying */
void scene_ipc(void);      /* memory of another process */
void scene_contexts(void); /* what ends with its context */

#endif
