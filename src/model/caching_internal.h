/* SPDX-License-Identifier: MIT */
/* model/caching_internal.h - private types and functions that the files of the caching allocator's
 * model share.
 *
 * Blocks are numbers (0: none) in one array; dead ones are linked by `next`. `prev` and `next` are
 * a block's neighbours in its segment. A free, mapped block is in its lane's set, by size. An
 * unmapped block of an expandable segment is in the lane's set of unmapped blocks, where all have
 * size 0, so they are ordered by address. */
#ifndef TMK_MODEL_CACHING_INTERNAL_H
#define TMK_MODEL_CACHING_INTERNAL_H

#include "base/valid.h"
#include "model/caching_allocator.h"
#include "model/driver_space.h"
#include "model/free_set.h"

struct caching_block {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t gc_base;     /* the pool's count of searches when it became free */
    uint64_t segment_end; /* of an expandable segment; 0: the segment is not expandable */
    uint64_t segment_start;
    uint32_t prev, next;
    uint32_t lane;
    uint8_t is_allocated;
    uint8_t is_mapped;
    uint8_t is_pending; /* freed, but another stream still uses it */
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

    uint32_t *pending; /* blocks with a requested free */
    uint64_t n_pending, pending_room;

    struct tmk_driver_space space;
    uint64_t next_address; /* for expandable segments, which share no pool with the others */
    uint64_t n_placed;     /* recorded places used so far */
    bool lost_places;      /* a segment was asked for that was not recorded */
    uint64_t total_bytes;  /* reserved from the driver */
};

/* Check the allocator after a call of the program that returns `rc`. */
#define TMK_CACHING_ASSERT_VALID(a, rc)                                                            \
    TMK_ASSERT_VALID((rc) < 0 || tmk_caching_is_valid(a), tmk_caching_check_cost(a))

static inline struct caching_block *caching_block_at(struct tmk_caching_allocator *a, uint32_t b)
{
    return &a->blocks[b];
}

/* Make a block like `like`; 0: no memory. Pointers into a->blocks are invalid afterwards. */
uint32_t tmk_caching_new_block(struct tmk_caching_allocator *a, const struct caching_block *like);
void tmk_caching_drop_block(struct tmk_caching_allocator *a, uint32_t b);
/* Put a block into the set it belongs to, or take it out. */
int tmk_caching_insert(struct tmk_caching_allocator *a, uint32_t b);
void tmk_caching_remove(struct tmk_caching_allocator *a, uint32_t b);
/* Merge `src` into its neighbour `dst`, if both are free and both mapped or both unmapped. */
void tmk_caching_merge(struct tmk_caching_allocator *a, uint32_t dst, uint32_t src);
void tmk_caching_reserve(struct tmk_caching_allocator *a, uint64_t bytes);
void tmk_caching_unreserve(struct tmk_caching_allocator *a, uint64_t bytes);
/* Take `bytes` of address space that touch no others; 0: none are left. */
uint64_t tmk_caching_address(struct tmk_caching_allocator *a, uint64_t bytes);

/* Above the threshold, release free segments of the large pool that are older than the average. */
void tmk_caching_collect_garbage(struct tmk_caching_allocator *a);
/* Release oversize blocks for a request of `bytes`; true: enough was released. */
bool tmk_caching_release_oversize(struct tmk_caching_allocator *a, struct caching_lane *lane,
                                  uint64_t bytes);

/* Map pages for a block of at least `bytes` and take it out of its set. 1, 0 (no address space), or
 * TMK_ENOMEM. */
int tmk_caching_expand(struct tmk_caching_allocator *a, uint32_t lane, uint64_t bytes,
                       uint32_t *ret_block);
/* Release the whole pages of a free block. 0 or TMK_ENOMEM. */
int tmk_caching_unmap(struct tmk_caching_allocator *a, uint32_t b);
/* Choose the best block from `c` on where blocks can grow. */
struct tmk_free_cursor tmk_caching_best_expandable(const struct tmk_caching_allocator *a,
                                                   const struct caching_lane *lane,
                                                   struct tmk_free_cursor c);

#endif
