/* SPDX-License-Identifier: MIT */
/* model/caching_allocator.c - see caching_allocator.h: pools, splitting and merging.
 * caching_release.c releases memory, caching_expandable.c has the expandable segments.
 *
 * The model follows the behaviour of torch 2.11's allocator, above all the order in which it tries
 * things: each function here is one of its steps. The caller says what the GPU does (streams that
 * finish); the driver is assumed to have memory up to the limit.
 *
 * Ties of best fit go to the lower address, so the addresses that the driver gives can matter. They
 * are modelled too (driver_space.h), or known from a trace. */
#include "model/caching_allocator.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "kit/grow.h"
#include "model/caching_internal.h"
#include "model/free_set.h"

enum { MAX_STREAM = 65535 };

static const uint64_t first_address = 1ull << 32;
static const uint64_t max_request =
    1ull << 46; /* a larger request is out of memory, whatever the limit */

/* ---- blocks ---- */

uint32_t tmk_caching_new_block(struct tmk_caching_allocator *a, const struct caching_block *like)
{
    struct caching_block copy = *like; /* it may lie in the array */
    uint32_t b = a->dead;
    if (b) {
        a->dead = a->blocks[b].next;
    } else {
        if (a->n_blocks >> TMK_FREE_SET_INDEX_BITS)
            return 0;
        if (TMK_GROW(a->blocks, a->n_blocks + 1, a->block_room) < 0)
            return 0;
        b = (uint32_t)a->n_blocks++;
    }
    a->blocks[b] = copy;
    return b;
}

void tmk_caching_drop_block(struct tmk_caching_allocator *a, uint32_t b)
{
    a->blocks[b] = (struct caching_block){.next = a->dead};
    a->dead = b;
}

int tmk_caching_insert(struct tmk_caching_allocator *a, uint32_t b)
{
    struct caching_block *block = caching_block_at(a, b);
    struct caching_lane *lane = &a->lanes[block->lane];
    if (!block->is_mapped)
        return tmk_free_set_add(&lane->unmapped, 0, block->address, b);
    block->gc_base = a->n_searches[lane->is_small];
    return tmk_free_set_add(&lane->blocks, block->size_bytes, block->address, b);
}

void tmk_caching_remove(struct tmk_caching_allocator *a, uint32_t b)
{
    const struct caching_block *block = caching_block_at(a, b);
    struct caching_lane *lane = &a->lanes[block->lane];
    if (block->is_mapped)
        tmk_free_set_remove(&lane->blocks, block->size_bytes, block->address, b);
    else
        tmk_free_set_remove(&lane->unmapped, 0, block->address, b);
}

void tmk_caching_merge(struct tmk_caching_allocator *a, uint32_t dst, uint32_t src)
{
    struct caching_block *d = caching_block_at(a, dst);
    if (!src)
        return;
    const struct caching_block *s = caching_block_at(a, src);
    if (s->is_allocated || s->is_pending || s->is_mapped != d->is_mapped)
        return;
    tmk_caching_remove(a, src);
    d->size_bytes += s->size_bytes;
    if (d->prev == src) {
        d->address = s->address;
        d->prev = s->prev;
        if (d->prev)
            caching_block_at(a, d->prev)->next = dst;
    } else {
        d->next = s->next;
        if (d->next)
            caching_block_at(a, d->next)->prev = dst;
    }
    tmk_caching_drop_block(a, src);
}

/* ---- memory reserved from the driver ---- */

void tmk_caching_reserve(struct tmk_caching_allocator *a, uint64_t bytes)
{
    a->total_bytes += bytes;
    a->stats.reserved_bytes = a->total_bytes;
    if (a->total_bytes > a->stats.peak_reserved_bytes)
        a->stats.peak_reserved_bytes = a->total_bytes;
}

void tmk_caching_unreserve(struct tmk_caching_allocator *a, uint64_t bytes)
{
    a->total_bytes -= bytes;
    a->stats.reserved_bytes = a->total_bytes;
}

uint64_t tmk_caching_address(struct tmk_caching_allocator *a, uint64_t bytes)
{
    uint64_t address = a->next_address;
    if (bytes > TMK_FREE_SET_ADDRESS_END - address - TMK_ALLOC_SMALL_SEGMENT)
        return 0;
    a->next_address += bytes + TMK_ALLOC_SMALL_SEGMENT;
    return address;
}

/* The recorded place of the next segment, if that has this size. */
static const struct tmk_space_event *next_place(struct tmk_caching_allocator *a, uint64_t bytes)
{
    const struct tmk_caching_setup *setup = &a->setup;
    while (a->n_placed < setup->n_places && !setup->places[a->n_placed].size_bytes)
        a->n_placed++; /* skip a segment that ended */
    if (a->n_placed == setup->n_places || setup->places[a->n_placed].size_bytes != bytes)
        return NULL;
    return &setup->places[a->n_placed++];
}

/* Find the address that the driver gives to a new segment; 0: none. */
static uint64_t place_segment(struct tmk_caching_allocator *a, uint64_t bytes)
{
    const struct tmk_space_event *place = a->lost_places ? NULL : next_place(a, bytes);
    if (place && tmk_driver_space_put(&a->space, place->address, bytes) == 0)
        return place->address;
    a->lost_places = true;
    return tmk_driver_space_alloc(&a->space, bytes);
}

int tmk_caching_heed(struct tmk_caching_allocator *a, const struct tmk_space_hint *hint)
{
    return tmk_driver_space_heed(&a->space, hint);
}

/* ---- cached blocks ---- */

/* Take a free block by best fit. Oversize blocks serve only oversize requests, and not much smaller
 * ones. 0: none. */
static uint32_t take_free(struct tmk_caching_allocator *a, struct caching_lane *lane,
                          uint64_t bytes)
{
    const struct tmk_alloc_conf *conf = &a->setup.conf;
    if (a->has_gc)
        a->n_searches[lane->is_small]++;
    struct tmk_free_cursor c = tmk_free_set_find(&lane->blocks, bytes, 0);
    if (tmk_free_set_is_end(&lane->blocks, c))
        return 0;
    if (conf->expandable_segments)
        c = tmk_caching_best_expandable(a, lane, c);
    uint32_t b = tmk_free_set_block(&lane->blocks, c);
    uint64_t found = caching_block_at(a, b)->size_bytes;
    if (bytes < conf->max_split_bytes && found >= conf->max_split_bytes)
        return 0;
    if (bytes >= conf->max_split_bytes && found >= bytes + conf->max_non_split_rounding_bytes)
        return 0;
    tmk_free_set_remove_at(&lane->blocks, c);
    return b;
}

/* ---- a new segment ---- */

static void count_segment(struct tmk_caching_allocator *a, uint64_t bytes)
{
    tmk_caching_reserve(a, bytes);
    if (++a->stats.n_segments > a->stats.peak_segments)
        a->stats.peak_segments = a->stats.n_segments;
}

static int new_segment(struct tmk_caching_allocator *a, uint32_t lane, uint64_t bytes,
                       uint32_t *ret_block)
{
    uint64_t address = place_segment(a, bytes);
    if (!address)
        return 0;
    struct caching_block block = {
        .address = address, .size_bytes = bytes, .lane = lane, .is_mapped = true};
    uint32_t b = tmk_caching_new_block(a, &block);
    if (!b)
        return TMK_ENOMEM;
    count_segment(a, bytes);
    *ret_block = b;
    return 1;
}

/* Ask the driver for a segment. 1; 0: the limit is reached; or TMK_ENOMEM. */
static int ask_driver(struct tmk_caching_allocator *a, uint32_t lane, uint64_t bytes,
                      uint32_t *ret_block)
{
    uint64_t segment = tmk_alloc_segment_bytes(&a->setup.conf, bytes);
    uint64_t limit = a->setup.limit_bytes;
    assert(segment >= bytes);
    if (limit != TMK_ALLOC_NO_BOUND && (segment > limit || a->total_bytes > limit - segment))
        return 0;
    if (a->setup.conf.expandable_segments)
        return tmk_caching_expand(a, lane, bytes, ret_block);
    return new_segment(a, lane, segment, ret_block);
}

static int take_new(struct tmk_caching_allocator *a, uint32_t lane, uint64_t bytes,
                    uint32_t *ret_block)
{
    if (a->has_gc)
        tmk_caching_collect_garbage(a);
    int rc = ask_driver(a, lane, bytes, ret_block);
    if (rc == 0 && tmk_caching_release_oversize(a, &a->lanes[lane], bytes))
        rc = ask_driver(a, lane, bytes, ret_block);
    if (rc != 0)
        return rc;
    rc = tmk_caching_empty_cache(a);
    if (rc < 0)
        return rc;
    a->stats.n_retries++;
    return ask_driver(a, lane, bytes, ret_block);
}

/* ---- the program's calls ---- */

static int find_lane(struct tmk_caching_allocator *a, uint32_t stream, bool is_small,
                     uint32_t *ret_lane)
{
    uint64_t n = N_POOLS * ((uint64_t)stream + 1);
    if (n > a->n_lanes) {
        if (TMK_GROW(a->lanes, n, a->lane_room) < 0)
            return TMK_ENOMEM;
        for (; a->n_lanes < n; a->n_lanes++)
            a->lanes[a->n_lanes] = (struct caching_lane){.is_small = a->n_lanes % N_POOLS};
    }
    *ret_lane = N_POOLS * stream + is_small;
    return 0;
}

/* Split block `b`: its first `bytes` become a block of their own, the rest is free again. Returns
 * the new block, 0 without memory. */
static uint32_t split_block(struct tmk_caching_allocator *a, uint32_t b, uint64_t bytes)
{
    uint32_t head = tmk_caching_new_block(a, caching_block_at(a, b));
    if (!head)
        return 0;
    struct caching_block *h = caching_block_at(a, head), *rest = caching_block_at(a, b);
    h->size_bytes = bytes;
    h->next = b;
    if (h->prev)
        caching_block_at(a, h->prev)->next = head;
    rest->prev = head;
    rest->address += bytes;
    rest->size_bytes -= bytes;
    return tmk_caching_insert(a, b) < 0 ? 0 : head;
}

static void count_allocated(struct tmk_caching_allocator *a, uint64_t bytes)
{
    struct tmk_caching_stats *s = &a->stats;
    s->allocated_bytes += bytes;
    assert(s->allocated_bytes <= s->reserved_bytes);
    if (s->allocated_bytes > s->peak_allocated_bytes)
        s->peak_allocated_bytes = s->allocated_bytes;
}

static int serve_block(struct tmk_caching_allocator *a, uint64_t bytes, uint32_t stream,
                       uint32_t *ret_block)
{
    uint32_t lane, b;
    if (bytes > max_request) {
        a->stats.n_ooms++;
        return 0;
    }
    uint64_t rounded = tmk_alloc_round(&a->setup.conf, bytes);
    int rc =
        stream > MAX_STREAM ? TMK_EINVAL : find_lane(a, stream, tmk_alloc_is_small(rounded), &lane);
    if (rc < 0)
        return rc;
    b = take_free(a, &a->lanes[lane], rounded);
    rc = b ? 1 : take_new(a, lane, rounded, &b);
    if (rc == 0)
        a->stats.n_ooms++;
    if (rc <= 0)
        return rc;
    if (tmk_alloc_should_split(&a->setup.conf, caching_block_at(a, b)->size_bytes, rounded))
        b = split_block(a, b, rounded);
    if (!b)
        return TMK_ENOMEM;
    caching_block_at(a, b)->is_allocated = true;
    count_allocated(a, caching_block_at(a, b)->size_bytes);
    *ret_block = b;
    return 1;
}

int tmk_caching_malloc(struct tmk_caching_allocator *a, uint64_t bytes, uint32_t stream,
                       uint32_t *ret_block)
{
    int rc = serve_block(a, bytes, stream, ret_block);
    TMK_CACHING_ASSERT_VALID(a, rc);
    return rc;
}

/* Add a part of a seeded segment behind the previous one. Returns its block, 0 without memory. */
static uint32_t seed_part(struct tmk_caching_allocator *a, struct caching_block *like,
                          uint64_t size_bytes, bool is_allocated)
{
    like->size_bytes = size_bytes;
    like->is_allocated = is_allocated;
    uint32_t b = tmk_caching_new_block(a, like);
    if (!b)
        return 0;
    if (like->prev)
        caching_block_at(a, like->prev)->next = b;
    like->prev = b;
    like->address += size_bytes;
    if (is_allocated)
        count_allocated(a, size_bytes);
    else if (tmk_caching_insert(a, b) < 0)
        return 0;
    return b;
}

int tmk_caching_seed(struct tmk_caching_allocator *a, const struct tmk_caching_seed *segment,
                     uint32_t stream, const struct tmk_caching_seed *blocks, uint64_t n,
                     uint32_t *ret_blocks)
{
    assert(!a->setup.conf.expandable_segments);
    uint64_t end = segment->address + segment->size_bytes;
    struct caching_block like = {.address = segment->address, .is_mapped = true};
    int rc = find_lane(a, stream, segment->size_bytes == TMK_ALLOC_SMALL_SEGMENT, &like.lane);
    if (rc == 0)
        rc = tmk_driver_space_put(&a->space, segment->address, segment->size_bytes);
    if (rc == 0)
        count_segment(a, segment->size_bytes);
    for (uint64_t i = 0; i < n && rc == 0; i++) {
        assert(blocks[i].address >= like.address && blocks[i].size_bytes > 0 &&
               blocks[i].size_bytes <= end - blocks[i].address);
        uint64_t gap = blocks[i].address - like.address;
        if (gap && !seed_part(a, &like, gap, false))
            rc = TMK_ENOMEM;
        if (rc == 0 && !(ret_blocks[i] = seed_part(a, &like, blocks[i].size_bytes, true)))
            rc = TMK_ENOMEM;
    }
    if (rc == 0 && like.address < end && !seed_part(a, &like, end - like.address, false))
        rc = TMK_ENOMEM;
    TMK_CACHING_ASSERT_VALID(a, rc);
    return rc;
}

static void mark_block_free(struct tmk_caching_allocator *a, uint32_t b)
{
    assert(b < a->n_blocks && caching_block_at(a, b)->is_allocated);
    caching_block_at(a, b)->is_allocated = false;
    a->stats.allocated_bytes -= caching_block_at(a, b)->size_bytes;
}

static int make_free(struct tmk_caching_allocator *a, uint32_t b)
{
    tmk_caching_merge(a, b, caching_block_at(a, b)->prev);
    tmk_caching_merge(a, b, caching_block_at(a, b)->next);
    return tmk_caching_insert(a, b);
}

int tmk_caching_free(struct tmk_caching_allocator *a, uint32_t block)
{
    mark_block_free(a, block);
    int rc = make_free(a, block);
    TMK_CACHING_ASSERT_VALID(a, rc);
    return rc;
}

int tmk_caching_free_requested(struct tmk_caching_allocator *a, uint32_t block)
{
    if (TMK_GROW(a->pending, a->n_pending + 1, a->pending_room) < 0)
        return TMK_ENOMEM;
    a->pending[a->n_pending++] = block;
    mark_block_free(a, block);
    caching_block_at(a, block)->is_pending = true;
    TMK_CACHING_ASSERT_VALID(a, 0);
    return 0;
}

int tmk_caching_free_completed(struct tmk_caching_allocator *a, uint32_t block)
{
    uint64_t i = 0;
    while (i < a->n_pending && a->pending[i] != block)
        i++;
    if (i == a->n_pending)
        return 0;
    for (a->n_pending--; i < a->n_pending; i++) /* they complete in order */
        a->pending[i] = a->pending[i + 1];
    caching_block_at(a, block)->is_pending = false;
    int rc = make_free(a, block);
    TMK_CACHING_ASSERT_VALID(a, rc);
    return rc;
}

/* ---- the allocator ---- */

/* Begin made-up addresses behind the recorded ones, which may be any number in a damaged trace. */
static void learn_places(struct tmk_caching_allocator *a)
{
    for (uint64_t i = 0; i < a->setup.n_places; i++) {
        const struct tmk_space_event *place = &a->setup.places[i];
        bool fits = place->address < TMK_FREE_SET_ADDRESS_END / 2 + max_request &&
                    place->size_bytes < max_request && place->address % TMK_ALLOC_UNIT == 0;
        uint64_t end = place->address + place->size_bytes + TMK_ALLOC_SMALL_SEGMENT;
        if (!fits || !place->address)
            a->lost_places = true;
        else if (end > a->next_address)
            a->next_address = end;
    }
}

int tmk_caching_open(const struct tmk_caching_setup *setup,
                     struct tmk_caching_allocator **ret_allocator)
{
    struct tmk_caching_allocator *a = calloc(1, sizeof *a);
    if (!a)
        return TMK_ENOMEM;
    a->setup = *setup;
    a->has_gc = setup->conf.gc_threshold > 0 && setup->limit_bytes != TMK_ALLOC_NO_BOUND;
    a->next_address = first_address;
    a->space.top = setup->top;
    learn_places(a);
    if (tmk_caching_new_block(a, &(struct caching_block){0}) != 0 ||
        !a->blocks) { /* number 0: none */
        tmk_caching_close(a);
        return TMK_ENOMEM;
    }
    *ret_allocator = a;
    return 0;
}

struct tmk_caching_allocator *tmk_caching_close(struct tmk_caching_allocator *a)
{
    if (!a)
        return NULL;
    for (uint64_t i = 0; i < a->n_lanes; i++) {
        tmk_free_set_fini(&a->lanes[i].blocks);
        tmk_free_set_fini(&a->lanes[i].unmapped);
    }
    tmk_driver_space_fini(&a->space);
    free(a->lanes);
    free(a->blocks);
    free(a->pending);
    free(a);
    return NULL;
}

const struct tmk_caching_stats *tmk_caching_stats(const struct tmk_caching_allocator *a)
{
    return &a->stats;
}
