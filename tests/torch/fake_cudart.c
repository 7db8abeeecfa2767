/* SPDX-License-Identifier: MIT */
/* fake_cudart.c - stands for libcudart.so.13: addresses without memory behind them, and whoever
 * asked last. Its symbols have a version, as the real ones. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

static int current;
static uintptr_t next = 0x7f0000000000;
static void *last_caller;

enum { FAIL_BYTES = 12345, OUT_OF_MEMORY = 2 };

int cudaSetDevice(int device)
{
    current = device;
    return 0;
}

int cudaGetDevice(int *ret_device)
{
    *ret_device = current;
    return 0;
}

int cudaMalloc(void **ret_address, size_t size_bytes)
{
    last_caller = __builtin_return_address(0);
    if (size_bytes == FAIL_BYTES)
        return OUT_OF_MEMORY;
    *ret_address = (void *)next;
    next += size_bytes;
    return 0;
}

int cudaFree(void *address)
{
    (void)address;
    last_caller = __builtin_return_address(0);
    return 0;
}

/* The file that made the last call. */
const char *fake_cudart_caller(void)
{
    Dl_info info;
    return dladdr(last_caller, &info) ? info.dli_fname : "";
}
