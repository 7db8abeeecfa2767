/* SPDX-License-Identifier: MIT */
/* fake_c10_cuda.c - stands for libc10_cuda.so: gets memory from the runtime, through import slots,
 * and reports blocks as torch's allocator does. What is reserved changes with the segments, and is
 * said with the next block. */
#include <stddef.h>
#include <stdint.h>

int cudaMalloc(void **ret_address, size_t size_bytes);
int cudaFree(void *address);
int cudaSetDevice(int device);

void usage(void *address, int64_t size, uint64_t allocated, uint64_t reserved,
           uint16_t device) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");

enum { N_DEVICES = 2, CUDA = 1 };

static struct {
    uint64_t allocated, peak_allocated, reserved, peak_reserved;
} stats[N_DEVICES];

const uint64_t *fake_stats(int device)
{
    return &stats[device].allocated;
}

static void reserve(int device, int64_t size_bytes)
{
    stats[device].reserved += (uint64_t)size_bytes;
    if (stats[device].reserved > stats[device].peak_reserved)
        stats[device].peak_reserved = stats[device].reserved;
}

/* A segment; NULL: refused. */
void *fake_grow(int device, size_t size_bytes)
{
    void *address = NULL;
    cudaSetDevice(device);
    if (cudaMalloc(&address, size_bytes) != 0)
        return NULL;
    reserve(device, (int64_t)size_bytes);
    return address;
}

/* As empty_cache() does. */
void fake_shrink(int device, void *address, size_t size_bytes)
{
    cudaFree(address);
    reserve(device, -(int64_t)size_bytes);
}

/* An expandable segment, or an allocator that is not the runtime: nobody sees it. */
void fake_map(int device, int64_t size_bytes)
{
    reserve(device, size_bytes);
}

/* A block, of a negative size when it goes. */
void fake_block(int device, int64_t size_bytes)
{
    stats[device].allocated += (uint64_t)size_bytes;
    if (stats[device].allocated > stats[device].peak_allocated)
        stats[device].peak_allocated = stats[device].allocated;
    usage((void *)4096, size_bytes, stats[device].allocated, stats[device].reserved,
          (uint16_t)(CUDA | device << 8));
}
