/* SPDX-License-Identifier: MIT */
/* model/caching_valid.c - the invariants of caching_allocator.h. */
#include "base/valid.h"
#include "model/alloc_conf.h"
#include "model/caching_allocator.h"
#include "model/caching_internal.h"
#include "model/driver_space.h"
#include "model/free_set.h"

struct block_sums { /* sums over all blocks but the dead ones */
    uint64_t n;
    uint64_t n_free; /* free blocks, which are in sets */
    uint64_t n_pending;
    uint64_t n_segments; /* segments that are not expandable */
    uint64_t allocated_bytes, mapped_bytes;
};

/* ---- blocks ---- */

static bool is_dead(const struct caching_block *block)
{
    return block->size_bytes == 0;
}

static bool is_free(const struct caching_block *block)
{
    return !block->is_allocated && !block->is_pending;
}

static const struct tmk_free_set *set_of(const struct tmk_caching_allocator *a,
                                         const struct caching_block *block)
{
    const struct caching_lane *lane = &a->lanes[block->lane];
    return block->is_mapped ? &lane->blocks : &lane->unmapped;
}

static bool is_in_set(const struct tmk_caching_allocator *a, uint32_t b)
{
    const struct caching_block *block = &a->blocks[b];
    const struct tmk_free_set *set = set_of(a, block);
    uint64_t size = block->is_mapped ? block->size_bytes : 0;
    struct tmk_free_cursor c = tmk_free_set_find(set, size, block->address);
    for (; !tmk_free_set_is_end(set, c); tmk_free_set_next(set, &c)) {
        const struct tmk_free_key *key = &set->leaves[c.leaf]->keys[c.at];
        if (key->size_bytes != size ||
            key->place >> TMK_FREE_SET_INDEX_BITS != block->address / TMK_ALLOC_UNIT)
            return false;
        if (tmk_free_set_block(set, c) == b)
            return true;
    }
    return false;
}

/* Whether neighbours differ: free ones that are both mapped or both unmapped would be one block. */
static bool neighbours_are_valid(const struct tmk_caching_allocator *a, uint32_t b)
{
    const struct caching_block *block = &a->blocks[b];
    TMK_HOLDS(block->prev < a->n_blocks && block->next < a->n_blocks);
    TMK_HOLDS(!block->prev || a->blocks[block->prev].next == b);
    if (!block->next)
        return true;
    const struct caching_block *next = &a->blocks[block->next];
    TMK_HOLDS(next->prev == b);
    TMK_HOLDS(next->address == block->address + block->size_bytes);
    TMK_HOLDS(next->lane == block->lane && next->segment_start == block->segment_start &&
              next->segment_end == block->segment_end);
    TMK_HOLDS(!is_free(block) || !is_free(next) || block->is_mapped != next->is_mapped);
    return true;
}

/* Whether the block lies in its expandable segment, or in none. */
static bool place_is_valid(const struct tmk_caching_allocator *a, const struct caching_block *block)
{
    uint64_t end = block->address + block->size_bytes;
    if (!block->segment_end) {
        TMK_HOLDS(block->is_mapped && !block->segment_start);
        return true;
    }
    uint64_t page = tmk_alloc_page_bytes(&a->setup.conf, a->lanes[block->lane].is_small);
    TMK_HOLDS(block->address >= block->segment_start && end <= block->segment_end);
    TMK_HOLDS(block->prev || block->address == block->segment_start);
    TMK_HOLDS(block->next || end == block->segment_end);
    TMK_HOLDS(block->segment_end <= a->next_address);
    TMK_HOLDS(block->is_mapped || ((block->address - block->segment_start) % page == 0 &&
                                   (end - block->segment_start) % page == 0));
    return true;
}

static bool block_is_valid(const struct tmk_caching_allocator *a, uint32_t b)
{
    const struct caching_block *block = &a->blocks[b];
    TMK_HOLDS(block->address % TMK_ALLOC_UNIT == 0 && block->size_bytes % TMK_ALLOC_UNIT == 0);
    TMK_HOLDS(block->address < TMK_FREE_SET_ADDRESS_END && block->lane < a->n_lanes);
    TMK_HOLDS(!block->is_allocated || (!block->is_pending && block->is_mapped));
    if (!neighbours_are_valid(a, b) || !place_is_valid(a, block))
        return false;
    TMK_HOLDS(is_in_set(a, b) == is_free(block));
    return true;
}

static void add_block_to(struct block_sums *sums, const struct caching_block *block)
{
    sums->n++;
    sums->n_free += is_free(block);
    sums->n_pending += block->is_pending;
    sums->n_segments += !block->prev && !block->segment_end;
    sums->allocated_bytes += block->is_allocated ? block->size_bytes : 0;
    sums->mapped_bytes += block->is_mapped ? block->size_bytes : 0;
}

static bool blocks_are_valid(const struct tmk_caching_allocator *a, struct block_sums *sums)
{
    uint64_t n_dead = 0;
    TMK_HOLDS(a->n_blocks <= a->block_room && is_dead(&a->blocks[0]));
    for (uint32_t b = 1; b < a->n_blocks; b++) {
        if (is_dead(&a->blocks[b]))
            continue;
        if (!block_is_valid(a, b))
            return false;
        add_block_to(sums, &a->blocks[b]);
    }
    for (uint32_t b = a->dead; b; b = a->blocks[b].next) {
        TMK_HOLDS(b < a->n_blocks && is_dead(&a->blocks[b]));
        TMK_HOLDS(++n_dead < a->n_blocks); /* else the list is circular */
    }
    TMK_HOLDS(n_dead + sums->n + 1 == a->n_blocks);
    return true;
}

/* ---- lanes and pending blocks ---- */

static bool lanes_are_valid(const struct tmk_caching_allocator *a, const struct block_sums *sums)
{
    uint64_t n_free = 0;
    TMK_HOLDS(a->n_lanes <= a->lane_room && a->n_lanes % N_POOLS == 0);
    for (uint64_t i = 0; i < a->n_lanes; i++) {
        const struct caching_lane *lane = &a->lanes[i];
        TMK_HOLDS(lane->is_small == i % N_POOLS);
        if (!tmk_free_set_is_valid(&lane->blocks) || !tmk_free_set_is_valid(&lane->unmapped))
            return false;
        n_free += lane->blocks.n + lane->unmapped.n;
    }
    TMK_HOLDS(n_free == sums->n_free);
    return true;
}

static bool pending_are_valid(const struct tmk_caching_allocator *a, const struct block_sums *sums)
{
    TMK_HOLDS(a->n_pending == sums->n_pending && a->n_pending <= a->pending_room);
    for (uint64_t i = 0; i < a->n_pending; i++) {
        TMK_HOLDS(a->pending[i] < a->n_blocks && a->blocks[a->pending[i]].is_pending);
        for (uint64_t k = 0; k < i; k++)
            TMK_HOLDS(a->pending[k] != a->pending[i]);
    }
    return true;
}

/* ---- sums ---- */

static bool stats_are_valid(const struct tmk_caching_allocator *a, const struct block_sums *sums)
{
    const struct tmk_caching_stats *s = &a->stats;
    TMK_HOLDS(s->allocated_bytes == sums->allocated_bytes);
    TMK_HOLDS(s->reserved_bytes == sums->mapped_bytes && a->total_bytes == s->reserved_bytes);
    TMK_HOLDS(s->n_segments == sums->n_segments);
    TMK_HOLDS(s->allocated_bytes <= s->peak_allocated_bytes &&
              s->reserved_bytes <= s->peak_reserved_bytes && s->n_segments <= s->peak_segments);
    TMK_HOLDS(a->n_placed <= a->setup.n_places);
    return true;
}

/* Whether the model of addresses knows each segment that is not expandable. */
static bool space_is_valid(const struct tmk_caching_allocator *a)
{
    uint64_t n_ours = 0, n_bytes = 0, n_mapped = 0;
    for (uint64_t i = 0; i < a->space.segments.n; i++) {
        n_ours += !a->space.segments.pieces[i].is_others;
        n_bytes +=
            a->space.segments.pieces[i].is_others ? 0 : a->space.segments.pieces[i].size_bytes;
    }
    for (uint64_t b = 1; b < a->n_blocks; b++)
        n_mapped += a->blocks[b].segment_end ? 0 : a->blocks[b].size_bytes;
    TMK_HOLDS(n_ours == a->stats.n_segments);
    TMK_HOLDS(n_bytes == n_mapped);
    return tmk_driver_space_is_valid(&a->space);
}

/* ---- the allocator ---- */

uint64_t tmk_caching_check_cost(const struct tmk_caching_allocator *a)
{
    return 4 * a->n_blocks + a->n_lanes + a->n_pending * a->n_pending + a->space.segments.n;
}

bool tmk_caching_is_valid(const struct tmk_caching_allocator *a)
{
    struct block_sums sums = {0};
    return blocks_are_valid(a, &sums) && lanes_are_valid(a, &sums) && pending_are_valid(a, &sums) &&
           stats_are_valid(a, &sums) && space_is_valid(a);
}
