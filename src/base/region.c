/* SPDX-License-Identifier: MIT */
/* base/region.c - see region.h. */
#include "base/region.h"

#include <sys/mman.h>

#include "base/error.h"

int tmk_region_init(struct tmk_region *ret, size_t size_bytes)
{
    void *base = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return TMK_ENOMEM;
    ret->base = base;
    ret->size_bytes = size_bytes;
    return 0;
}

void tmk_region_fini(struct tmk_region *r)
{
    if (r->base)
        munmap(r->base, r->size_bytes);
    r->base = NULL;
    r->size_bytes = 0;
}

void tmk_region_clear(struct tmk_region *r)
{
    if (r->base)
        madvise(r->base, r->size_bytes, MADV_DONTNEED);
}
