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

/* Map so many bytes to be read and written, as mmap() with these flags does (NULL: it failed, with
 * errno), but with memory for what is touched only: a program that called mlockall(MCL_FUTURE)
 * would have memory for all of it at once, out of what it may lock. */
void *tmk_map_sparsely(size_t size_bytes, int flags, int fd);
/* The same, no forked child has it, and nothing may be touched until mprotect() allows it. */
void *tmk_map_unforked(size_t size_bytes, int flags, int fd);
/* Put private zeros in the place of a mapping, in one step: threads may write to it meanwhile and
 * later. False: it is as it was. */
bool tmk_map_replace(void *base, size_t size_bytes);

/* Private zeros at an address where nothing is mapped; what is mapped there stays. */
void tmk_map_missing(void *base, size_t size_bytes);

/* Reserve `size_bytes` of zeros. 0, or TMK_ENOMEM with *ret untouched. */
int tmk_region_init(struct tmk_region *ret, size_t size_bytes);
void tmk_region_fini(struct tmk_region *r);

/* Give all memory back to the kernel; the region stays and reads as zeros. */
void tmk_region_clear(struct tmk_region *r);

/* From now on regions of this process take memory by pages of 4 KiB, also where the kernel would
 * give 2 MiB for the first byte that is touched (transparent_hugepage=always). */
void tmk_region_use_small_pages(void);

/* The regions that the calling thread makes until tmk_region_pool_end() are cut from one mapping of
 * so many bytes, for as long as it lasts: that is a few system calls for all of them. A forked
 * child has none of them. */
void tmk_region_pool_begin(size_t size_bytes);
/* What no region has is given back. */
void tmk_region_pool_end(void);

#endif
