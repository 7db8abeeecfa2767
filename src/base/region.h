/* SPDX-License-Identifier: MIT */
/* base/region.h - arrays that grow in place, without malloc.
 *
 * A region reserves address space for the most it may ever hold; the kernel gives memory page by
 * page as it is touched. So nothing moves, pointers stay good, and the recorder's memory is bounded
 * by what it reserves. */
#ifndef TMK_BASE_REGION_H
#define TMK_BASE_REGION_H

#include <stdbool.h>
#include <stddef.h>

struct tmk_region {
    void *base;
    size_t size_bytes;
};

/* Maps `size_bytes` to be read and written, as mmap() with these flags does (NULL: it failed, with
 * errno), but only touched pages get memory. After mlockall(MCL_FUTURE) mmap() alone would take
 * memory for all of it at once, out of what the program may lock. */
void *tmk_map_sparsely(size_t size_bytes, int flags, int fd);
/* The same for a mapping that no forked child has; nothing may be touched until mprotect() allows
 * it. */
void *tmk_map_unforked(size_t size_bytes, int flags, int fd);
/* Replaces a mapping by private zeros, in one step: threads may write to it meanwhile and later.
 * Returns false when the mapping is as it was. */
bool tmk_map_replace(void *base, size_t size_bytes);

/* Maps private zeros at an address where nothing is mapped; an existing mapping stays. */
void tmk_map_missing(void *base, size_t size_bytes);

/* Reserves `size_bytes` of zeros. Returns 0, or TMK_ENOMEM with *ret untouched. */
int tmk_region_init(struct tmk_region *ret, size_t size_bytes);
void tmk_region_fini(struct tmk_region *r);

/* Give all memory back to the kernel; the region stays and reads as zeros. */
void tmk_region_clear(struct tmk_region *r);

/* Give the memory behind the first `n_bytes` back, by whole pages: those read as zeros then. */
void tmk_region_trim(struct tmk_region *r, size_t n_bytes);

/* From now on regions of this process take memory by pages of 4 KiB, also where the kernel would
 * give 2 MiB for the first byte that is touched (transparent_hugepage=always). */
void tmk_region_use_small_pages(void);

/* Makes one mapping of `size_bytes`. The regions that the calling thread makes until
 * tmk_region_pool_end() are cut from it while it lasts, so all of them cost a few system calls. A
 * forked child has none of them. */
void tmk_region_pool_begin(size_t size_bytes);
/* Gives back the part of the mapping that no region has. */
void tmk_region_pool_end(void);

#endif
