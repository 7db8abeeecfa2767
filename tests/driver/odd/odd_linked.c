/* SPDX-License-Identifier: MIT */
/* A program that is linked with odd_stub.c. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **ret, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(uint64_t *ret, size_t n);

int main(void)
{
    void *context = NULL;
    uint64_t p = 0;
    int codes[] = {cuInit(0), cuDevicePrimaryCtxRetain(&context, 0), cuCtxSetCurrent(context),
                   cuMemAlloc_v2(&p, 3 << 20)};
    printf("%d %d %d %d\n", codes[0], codes[1], codes[2], codes[3]);
    return 0;
}
