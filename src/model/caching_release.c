/* SPDX-License-Identifier: MIT */
/* model/caching_release.c - how the model releases segments to the driver: garbage collection,
 * oversize blocks for a request that does not fit, and everything that is cached.
 *
 * Sets change while they are walked, so each step looks for the key behind the last one. */
#include "model/alloc_conf.h"
#include "model/caching_allocator.h"
#include "model/caching_internal.h"
#include "model/driver_space.h"
#include "model/free_set.h"

static bool is_split(const struct caching_block *block)
{
    return block->prev || block->next;
}

/* Release a free block that is a whole segment. The block is in its lane's set. */
static void release_block(struct tmk_caching_allocator *a, uint32_t b)
{
    tmk_caching_remove(a, b);
    tmk_driver_space_free(&a->space, caching_block_at(a, b)->address);
    tmk_caching_unreserve(a, caching_block_at(a, b)->size_bytes);
    a->stats.n_segments--;
    tmk_caching_drop_block(a, b);
}

/* ---- garbage collection ---- */

struct block_ages {
    uint64_t total;
    uint64_t n;
};

static uint64_t age_of(const struct tmk_caching_allocator *a, const struct caching_block *block)
{
    return a->n_searches[0] - block->gc_base;
}

static struct block_ages sum_ages(struct tmk_caching_allocator *a)
{
    struct block_ages ages = {0};
    for (uint64_t i = 0; i < a->n_lanes; i += N_POOLS) {
        const struct tmk_free_set *set = &a->lanes[i].blocks;
        struct tmk_free_cursor c = tmk_free_set_begin();
        for (; !tmk_free_set_is_end(set, c); tmk_free_set_next(set, &c)) {
            const struct caching_block *block = caching_block_at(a, tmk_free_set_block(set, c));
            if (!is_split(block)) {
                ages.total += age_of(a, block);
                ages.n++;
            }
        }
    }
    return ages;
}

/* Release the free segments of a lane that are at least as old as `threshold`. Returns the
 * bytes. */
static uint64_t collect_lane(struct tmk_caching_allocator *a, struct caching_lane *lane,
                             double threshold, struct block_ages *ages)
{
    uint64_t freed = 0;
    struct tmk_free_set *set = &lane->blocks;
    uint64_t size = 0, address = 0; /* of the last block seen: sets change when one is removed */
    for (;;) {
        struct tmk_free_cursor c = tmk_free_set_find(set, size, address);
        if (tmk_free_set_is_end(set, c))
            return freed;
        uint32_t b = tmk_free_set_block(set, c);
        const struct caching_block *block = caching_block_at(a, b);
        size = block->size_bytes;
        address = block->address + TMK_ALLOC_UNIT;
        uint64_t age = age_of(a, block);
        if (is_split(block) || block->segment_end || (double)age < threshold)
            continue;
        freed += block->size_bytes;
        ages->total -= age;
        ages->n--;
        release_block(a, b);
    }
}

/* Above the threshold, release free segments of the large pool that are older than the average,
 * round by round, until enough is free or none is left to release. */
void tmk_caching_collect_garbage(struct tmk_caching_allocator *a)
{
    uint64_t wanted = (uint64_t)(a->setup.conf.gc_threshold * (double)a->setup.limit_bytes);
    if (a->total_bytes <= wanted)
        return;
    uint64_t target = a->total_bytes - wanted, freed = 0, round = 1;
    struct block_ages ages = sum_ages(a);
    while (freed < target && round > 0 && ages.n > 0) {
        double threshold = (double)ages.total / (double)ages.n;
        round = 0;
        for (uint64_t i = 0; i < a->n_lanes; i += N_POOLS)
            round += collect_lane(a, &a->lanes[i], threshold, &ages);
        freed += round;
    }
}

/* ---- below the limit ---- */

/* Release one oversize block that is large enough or, if none is, the largest ones until they add
 * up. True: enough was released. */
bool tmk_caching_release_oversize(struct tmk_caching_allocator *a, struct caching_lane *lane,
                                  uint64_t bytes)
{
    uint64_t least = a->setup.conf.max_split_bytes;
    if (least == TMK_ALLOC_NO_BOUND)
        return false;
    uint64_t need = bytes < least ? least : bytes, released = 0;
    struct tmk_free_set *set = &lane->blocks;
    struct tmk_free_cursor c = tmk_free_set_find(set, need, 0);
    if (!tmk_free_set_is_end(set, c) &&
        !caching_block_at(a, tmk_free_set_block(set, c))->segment_end) {
        release_block(a, tmk_free_set_block(set, c));
        return true;
    }
    bool more = tmk_free_set_back(set, &c);
    while (more && released < need) {
        uint32_t b = tmk_free_set_block(set, c);
        const struct caching_block *block = caching_block_at(a, b);
        uint64_t size = block->size_bytes, address = block->address;
        if (size < least)
            break;
        if (!block->segment_end) {
            released += size;
            release_block(a, b);
        }
        c = tmk_free_set_find(set, size, address);
        more = tmk_free_set_back(set, &c);
    }
    return released >= need;
}

static int complete_pending(struct tmk_caching_allocator *a)
{
    int rc = 0;
    while (rc == 0 && a->n_pending > 0)
        rc = tmk_caching_free_completed(a, a->pending[0]);
    return rc;
}

/* Release the free segments of a lane, and the free pages of expandable ones. */
static int release_lane(struct tmk_caching_allocator *a, struct caching_lane *lane)
{
    struct tmk_free_set *set = &lane->blocks;
    uint64_t size = 0, address = 0;
    int rc = 0;
    while (rc == 0) {
        struct tmk_free_cursor c = tmk_free_set_find(set, size, address);
        if (tmk_free_set_is_end(set, c))
            break;
        uint32_t b = tmk_free_set_block(set, c);
        const struct caching_block *block = caching_block_at(a, b);
        size = block->size_bytes;
        address = block->address + TMK_ALLOC_UNIT;
        if (block->segment_end)
            rc = tmk_caching_unmap(a, b);
        else if (!is_split(block))
            release_block(a, b);
    }
    return rc;
}

int tmk_caching_empty_cache(struct tmk_caching_allocator *a)
{
    int rc = complete_pending(a);
    a->stats.n_syncs++;
    for (unsigned is_small = 0; is_small < N_POOLS; is_small++)
        for (uint64_t i = is_small; i < a->n_lanes && rc == 0; i += N_POOLS)
            rc = release_lane(a, &a->lanes[i]);
    TMK_CACHING_ASSERT_VALID(a, rc);
    return rc;
}
