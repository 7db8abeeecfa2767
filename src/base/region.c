/* SPDX-License-Identifier: MIT */
/* base/region.c - see region.h. */
#include "base/region.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/forks.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum { PAGE_BYTES = 1 << 16 }; /* the largest that a kernel has */

/* Maps memory that may not be touched yet. */
static void *map_closed(size_t size_bytes, int flags, int fd)
{
    void *base = mmap(NULL, size_bytes, PROT_NONE, flags, fd, 0);
    if (base == MAP_FAILED)
        return NULL;
    munlock(base, size_bytes);
    return base;
}

/* Forks wait: a child that is forked between the two calls would have the mapping. */
void *tmk_map_unforked(size_t size_bytes, int flags, int fd)
{
    tmk_forks_hold();
    void *base = map_closed(size_bytes, flags, fd);
    int before = errno;
    if (base)
        madvise(base, size_bytes, MADV_DONTFORK);
    tmk_forks_let();
    errno = before;
    return base;
}

void *tmk_map_sparsely(size_t size_bytes, int flags, int fd)
{
    void *base = map_closed(size_bytes, flags, fd);
    if (base && mprotect(base, size_bytes, PROT_READ | PROT_WRITE) < 0) {
        munmap(base, size_bytes);
        return NULL;
    }
    return base;
}

bool tmk_map_replace(void *base, size_t size_bytes)
{
    void *fresh = tmk_map_sparsely(size_bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    if (!fresh)
        return false;
    if (mremap(fresh, size_bytes, size_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, base) != MAP_FAILED)
        return true;
    munmap(fresh, size_bytes);
    return false;
}

/* Kernels before 4.17 take the address for a hint, and may map elsewhere. */
void tmk_map_missing(void *base, size_t size_bytes)
{
    enum { FLAGS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE };
    void *got = mmap(base, size_bytes, PROT_READ | PROT_WRITE, FLAGS, -1, 0);
    if (got != MAP_FAILED && got != base)
        munmap(got, size_bytes);
}

static bool has_small_pages;

void tmk_region_use_small_pages(void)
{
    has_small_pages = true;
}

static void *map_zeros(size_t size_bytes, bool is_forked)
{
    void *base = tmk_map_sparsely(size_bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    if (base && has_small_pages)
        madvise(base, size_bytes, MADV_NOHUGEPAGE);
    if (base && !is_forked)
        madvise(base, size_bytes, MADV_DONTFORK);
    return base;
}

/* The calling thread's pool: the memory that no region has yet. */
static __thread struct {
    uint8_t *base;
    size_t left_bytes;
    bool is_begun;
} pool __attribute__((tls_model("initial-exec")));

static size_t round_up_to_pages(size_t size_bytes)
{
    return (size_bytes + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1);
}

void tmk_region_pool_begin(size_t size_bytes)
{
    tmk_region_pool_end();
    pool.base = map_zeros(round_up_to_pages(size_bytes), false);
    pool.is_begun = true;
    pool.left_bytes = pool.base ? round_up_to_pages(size_bytes) : 0;
}

void tmk_region_pool_end(void)
{
    if (pool.left_bytes > 0)
        munmap(pool.base, pool.left_bytes);
    pool.left_bytes = 0;
    pool.is_begun = false;
}

static void *take_from_pool(size_t size_bytes)
{
    size_t n = round_up_to_pages(size_bytes);
    if (n == 0 || n > pool.left_bytes)
        return NULL;
    void *base = pool.base;
    pool.base += n;
    pool.left_bytes -= n;
    return base;
}

int tmk_region_init(struct tmk_region *ret, size_t size_bytes)
{
    void *base = take_from_pool(size_bytes);
    if (!base)
        base = map_zeros(size_bytes, !pool.is_begun);
    if (!base)
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

void tmk_region_trim(struct tmk_region *r, size_t n_bytes)
{
    size_t kept = (n_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    if (r->base && kept < r->size_bytes)
        madvise((char *)r->base + kept, r->size_bytes - kept, MADV_DONTNEED);
}
