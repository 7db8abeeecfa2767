/* SPDX-License-Identifier: MIT */
/* model/caching_internal.h - what the files of the caching allocator's model share.
 *
 * Blocks are numbers (0: none) in one array; dead ones are linked by `next`. A block lies between
 * its neighbours of the same segment: prev and next. A free one that is mapped is in its lane's set
 * by size; an unmapped one, in an expandable segment, in the lane's set of unmapped ones, where all
 * have size 0, so that their order is that of addresses. */
#ifndef TMK_MODEL_CACHING_INTERNAL_H
#define TMK_MODEL_CACHING_INTERNAL_H

#include "model/caching_allocator.h"
#include "model/driver_space.h"
#include "model/free_set.h"

struct caching_block {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t gc_base;     /* the pool's count of searches when it became free */
    uint64_t segment_end; /* of an expandable segment; 0: of one that the driver gave whole */
    uint64_t segment_start;
    uint32_t prev, next;
    uint32_t lane;
    uint8_t is_allocated;
    uint8_t is_mapped;
    uint8_t is_pending; /* given up, but another stream is not done with it */
};

/* The blocks of one stream in one pool. */
struct caching_lane {
    struct tmk_free_set blocks;
    struct tmk_free_set unmapped;
    bool is_small;
};

enum { N_POOLS = 2 }; /* large, small */

struct tmk_caching_allocator {
    struct tmk_caching_setup setup;
    struct tmk_caching_stats stats;
    bool has_gc;

    struct caching_block *blocks;
    uint64_t n_blocks, block_room;
    uint32_t dead; /* the first of the dead blocks */

    struct caching_lane *lanes; /* by 2 * stream + is_small */
    uint64_t n_lanes, lane_room;
    uint64_t n_searches[N_POOLS]; /* by is_small */

    uint32_t *pending; /* blocks given up and not done with */
    uint64_t n_pending, pending_room;

    struct tmk_driver_space space;
    uint64_t next_address; /* of expandable segments, which share no pool with the others */
    uint64_t n_placed;     /* of the places recorded */
    bool lost_places;      /* a segment was none of the recorded ones */
    uint64_t total_bytes;  /* held of the driver */
};

static inline struct caching_block *caching_block_at(struct tmk_caching_allocator *a, uint32_t b)
{
    return &a->blocks[b];
}

/* 0: no memory. Pointers into a->blocks are void then and after. */
uint32_t tmk_caching_new_block(struct tmk_caching_allocator *a, const struct caching_block *like);
void tmk_caching_drop_block(struct tmk_caching_allocator *a, uint32_t b);
/* Into and out of the set that the block belongs to. */
int tmk_caching_insert(struct tmk_caching_allocator *a, uint32_t b);
void tmk_caching_remove(struct tmk_caching_allocator *a, uint32_t b);
/* `src` becomes part of its neighbour `dst`, when both are free alike. */
void tmk_caching_merge(struct tmk_caching_allocator *a, uint32_t dst, uint32_t src);
void tmk_caching_reserve(struct tmk_caching_allocator *a, uint64_t bytes);
void tmk_caching_unreserve(struct tmk_caching_allocator *a, uint64_t bytes);
/* `n` bytes of address space that touch no others; 0: there are none left. */
uint64_t tmk_caching_address(struct tmk_caching_allocator *a, uint64_t bytes);

/* Above the threshold, whole free segments of the large pool that are older than the average go. */
void tmk_caching_collect_garbage(struct tmk_caching_allocator *a);
/* Oversize blocks for a request of `bytes`: true when enough was given back. */
bool tmk_caching_release_oversize(struct tmk_caching_allocator *a, struct caching_lane *lane,
                                  uint64_t bytes);

/* A block of at least `bytes`, out of its set; pages are mapped for it. 1, 0 (no address space), or
 * TMK_ENOMEM. */
int tmk_caching_expand(struct tmk_caching_allocator *a, uint32_t lane, uint64_t bytes,
                       uint32_t *ret_block);
/* Give whole free pages of a free block back. 0 or TMK_ENOMEM. */
int tmk_caching_unmap(struct tmk_caching_allocator *a, uint32_t b);
/* The smallest block that serves best, where blocks can grow: from `c` on. */
struct tmk_free_cursor tmk_caching_best_expandable(const struct tmk_caching_allocator *a,
                                                   const struct caching_lane *lane,
                                                   struct tmk_free_cursor c);

#endif
