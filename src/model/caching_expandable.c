/* SPDX-License-Identifier: MIT */
/* model/caching_expandable.c - the model's expandable segments: address space for more than the
 * GPU's memory. Pages are mapped when a request needs them and unmapped when everything cached is
 * released.
 *
 *     | block | free | block |      unmapped ...                                  |
 *     ^ segment_start, mapped in pages of 2 MiB (small) or 20 MiB (large)         ^ segment_end
 *
 * An unmapped block begins and ends at a page. A new block goes to the lowest address at which it
 * fits by mapping pages, a free block just before them included. */
#include "base/error.h"
#include "model/alloc_conf.h"
#include "model/caching_internal.h"
#include "model/free_set.h"

static const uint64_t unknown_card_bytes = 1ull << 40;

static uint64_t block_page_bytes(const struct tmk_caching_allocator *a,
                                 const struct caching_block *block)
{
    return tmk_alloc_page_bytes(&a->setup.conf, a->lanes[block->lane].is_small);
}

static bool is_block_usable(const struct tmk_caching_allocator *a, uint32_t b)
{
    return b && !a->blocks[b].is_allocated && !a->blocks[b].is_pending;
}

/* The size that a free block could grow to by mapping pages. */
static uint64_t growable_bytes(const struct tmk_caching_allocator *a, uint32_t b)
{
    const struct caching_block *block = &a->blocks[b];
    const struct caching_block *next = &a->blocks[block->next];
    return block->size_bytes + (block->next && !next->is_mapped ? next->size_bytes : 0);
}

/* A block at the end of the mapped pages counts as large as it could become, so that it is not
 * split while another block would do. */
struct tmk_free_cursor tmk_caching_best_expandable(const struct tmk_caching_allocator *a,
                                                   const struct caching_lane *lane,
                                                   struct tmk_free_cursor c)
{
    uint64_t best = growable_bytes(a, tmk_free_set_block(&lane->blocks, c));
    struct tmk_free_cursor next = c;
    tmk_free_set_next(&lane->blocks, &next);
    while (!tmk_free_set_is_end(&lane->blocks, next)) {
        uint64_t bytes = growable_bytes(a, tmk_free_set_block(&lane->blocks, next));
        if (bytes >= best)
            break;
        best = bytes;
        c = next;
        tmk_free_set_next(&lane->blocks, &next);
    }
    return c;
}

/* Whether there is room for `bytes` from block `b` on, in free and unmapped blocks. */
static bool has_growth_room(const struct tmk_caching_allocator *a, uint32_t b, uint64_t bytes)
{
    uint64_t room = 0;
    while (room < bytes && is_block_usable(a, b)) {
        room += a->blocks[b].size_bytes;
        b = a->blocks[b].next;
    }
    return room >= bytes;
}

/* Take address space for 9/8 of the GPU's memory. 0: `wanted_bytes` are more than that. */
static int new_space(struct tmk_caching_allocator *a, uint32_t lane, uint64_t wanted_bytes,
                     uint32_t *ret_block)
{
    uint64_t card = a->setup.card_bytes ? a->setup.card_bytes : unknown_card_bytes;
    uint64_t page = tmk_alloc_page_bytes(&a->setup.conf, a->lanes[lane].is_small);
    uint64_t bytes = (card + card / 8 + page - 1) / page * page;
    uint64_t address = wanted_bytes > bytes ? 0 : tmk_caching_address(a, bytes);
    if (!address)
        return 0;
    struct caching_block block = {.address = address,
                                  .size_bytes = bytes,
                                  .segment_start = address,
                                  .segment_end = address + bytes,
                                  .lane = lane};
    uint32_t b = tmk_caching_new_block(a, &block);
    if (!b || tmk_caching_insert(a, b) < 0)
        return TMK_ENOMEM;
    *ret_block = b;
    return 1;
}

/* Find the first block of the lowest run of free and unmapped blocks that has room. */
static int find_growable_block(struct tmk_caching_allocator *a, uint32_t lane, uint64_t bytes,
                               uint32_t *ret_block)
{
    const struct tmk_free_set *set = &a->lanes[lane].unmapped;
    struct tmk_free_cursor c = tmk_free_set_begin();
    for (; !tmk_free_set_is_end(set, c); tmk_free_set_next(set, &c)) {
        uint32_t b = tmk_free_set_block(set, c);
        if (is_block_usable(a, a->blocks[b].prev))
            b = a->blocks[b].prev;
        if (has_growth_room(a, b, bytes)) {
            *ret_block = b;
            return 1;
        }
    }
    return new_space(a, lane, bytes, ret_block);
}

/* Map the first `bytes` of an unmapped block, in whole pages, and merge it with free neighbours. 0
 * or TMK_ENOMEM. */
static int map_pages(struct tmk_caching_allocator *a, uint32_t b, uint64_t bytes)
{
    uint64_t page = block_page_bytes(a, caching_block_at(a, b));
    uint64_t mapped = (bytes + page - 1) / page * page;
    tmk_caching_remove(a, b);
    if (mapped < caching_block_at(a, b)->size_bytes) {
        uint32_t rest = tmk_caching_new_block(a, caching_block_at(a, b));
        if (!rest)
            return TMK_ENOMEM;
        struct caching_block *block = caching_block_at(a, b), *r = caching_block_at(a, rest);
        r->address += mapped;
        r->size_bytes -= mapped;
        r->prev = b;
        if (r->next)
            caching_block_at(a, r->next)->prev = rest;
        block->next = rest;
        block->size_bytes = mapped;
        if (tmk_caching_insert(a, rest) < 0)
            return TMK_ENOMEM;
    }
    caching_block_at(a, b)->is_mapped = true;
    tmk_caching_merge(a, b, caching_block_at(a, b)->prev);
    tmk_caching_merge(a, b, caching_block_at(a, b)->next);
    tmk_caching_reserve(a, mapped);
    return tmk_caching_insert(a, b);
}

static uint64_t lesser_bytes(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

int tmk_caching_expand(struct tmk_caching_allocator *a, uint32_t lane, uint64_t bytes,
                       uint32_t *ret_block)
{
    uint32_t b;
    int rc = find_growable_block(a, lane, bytes, &b);
    if (rc <= 0)
        return rc;
    if (!caching_block_at(a, b)->is_mapped)
        rc = map_pages(a, b, lesser_bytes(caching_block_at(a, b)->size_bytes, bytes));
    while (rc >= 0 && caching_block_at(a, b)->size_bytes < bytes) {
        uint64_t missing = bytes - caching_block_at(a, b)->size_bytes;
        b = caching_block_at(a, b)->next; /* the unmapped block absorbs the free one before it */
        rc = map_pages(a, b, lesser_bytes(caching_block_at(a, b)->size_bytes, missing));
    }
    if (rc < 0)
        return rc;
    tmk_caching_remove(a, b);
    *ret_block = b;
    return 1;
}

/* A part of block `b` that stays mapped becomes a free block of its own, before or behind it. */
static int keep_part(struct tmk_caching_allocator *a, uint32_t b, uint64_t address, uint64_t bytes)
{
    uint32_t part = tmk_caching_new_block(a, caching_block_at(a, b));
    if (!part)
        return TMK_ENOMEM;
    struct caching_block *block = caching_block_at(a, b), *p = caching_block_at(a, part);
    p->address = address;
    p->size_bytes = bytes;
    if (address == block->address) {
        p->next = b;
        if (p->prev)
            caching_block_at(a, p->prev)->next = part;
        block->prev = part;
    } else {
        p->prev = b;
        if (p->next)
            caching_block_at(a, p->next)->prev = part;
        block->next = part;
    }
    return tmk_caching_insert(a, part);
}

int tmk_caching_unmap(struct tmk_caching_allocator *a, uint32_t b)
{
    const struct caching_block was = *caching_block_at(a, b);
    uint64_t page = block_page_bytes(a, &was), end = was.address + was.size_bytes;
    uint64_t from = was.segment_start + (was.address - was.segment_start + page - 1) / page * page;
    uint64_t until = was.segment_start + (end - was.segment_start) / page * page;
    int rc = 0;
    if (from >= until)
        return 0;
    tmk_caching_remove(a, b);
    if (from > was.address)
        rc = keep_part(a, b, was.address, from - was.address);
    if (rc == 0 && until < end)
        rc = keep_part(a, b, until, end - until);
    if (rc < 0)
        return rc;
    struct caching_block *block = caching_block_at(a, b);
    block->address = from;
    block->size_bytes = until - from;
    block->is_mapped = false;
    tmk_caching_merge(a, b, block->prev);
    tmk_caching_merge(a, b, block->next);
    tmk_caching_unreserve(a, until - from);
    if (!block->prev && !block->next) { /* no page of the segment is mapped: drop it */
        tmk_caching_drop_block(a, b);
        return 0;
    }
    return tmk_caching_insert(a, b);
}
