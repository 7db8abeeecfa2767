/* SPDX-License-Identifier: MIT */
/* A driver of years to come, whose cuMemAlloc has other arguments from CUDA 14 on. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int cuMemAlloc_v2(uint64_t *ret, size_t n);
int cuMemAlloc_v3(int device, uint64_t *ret, size_t n);
int cuGetProcAddress_v2(const char *name, void **ret, int version, uint64_t flags, int *ret_status);

int cuMemAlloc_v2(uint64_t *ret, size_t n)
{
    (void)n;
    *ret = 0x1000;
    return 0;
}

int cuMemAlloc_v3(int device, uint64_t *ret, size_t n)
{
    (void)n;
    *ret = 0x2000 + (uint64_t)device;
    return 0;
}

int cuGetProcAddress_v2(const char *name, void **ret, int version, uint64_t flags, int *ret_status)
{
    (void)flags;
    *ret = NULL;
    *ret_status = 0;
    if (strcmp(name, "cuMemAlloc") == 0)
        *ret = version >= 14000 ? (void *)cuMemAlloc_v3 : (void *)cuMemAlloc_v2;
    return *ret ? 0 : 500;
}
