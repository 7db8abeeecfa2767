/* SPDX-License-Identifier: MIT */
/* model/caching_expandable.c - expandable segments of the model: address space for more than the
 * card, of which pages are mapped when a request needs them and unmapped when all is given back.
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

static uint64_t page_of(const struct tmk_caching_allocator *a, const struct block *block)
{
    return tmk_alloc_page_bytes(&a->setup.conf, a->lanes[block->lane].is_small);
}

static bool is_usable(const struct tmk_caching_allocator *a, uint32_t b)
{
    return b && !a->blocks[b].is_allocated && !a->blocks[b].is_pending;
}

/* What a free block could grow to by mapping. */
static uint64_t growable(const struct tmk_caching_allocator *a, uint32_t b)
{
    const struct block *block = &a->blocks[b];
    const struct block *next = &a->blocks[block->next];
    return block->size_bytes + (block->next && !next->is_mapped ? next->size_bytes : 0);
}

/* A block at the end of what is mapped counts as large as it could become, so that it is not cut
 * while another serves. */
struct tmk_free_cursor tmk_caching_best_expandable(const struct tmk_caching_allocator *a,
                                                   const struct lane *lane,
                                                   struct tmk_free_cursor c)
{
    uint64_t best = growable(a, tmk_free_set_block(&lane->blocks, c));
    struct tmk_free_cursor next = c;
    tmk_free_set_next(&lane->blocks, &next);
    while (!tmk_free_set_is_end(&lane->blocks, next)) {
        uint64_t bytes = growable(a, tmk_free_set_block(&lane->blocks, next));
        if (bytes >= best)
            break;
        best = bytes;
        c = next;
        tmk_free_set_next(&lane->blocks, &next);
    }
    return c;
}

/* Is there room for `bytes` from block `b` on, free and unmapped? */
static bool has_room(const struct tmk_caching_allocator *a, uint32_t b, uint64_t bytes)
{
    uint64_t room = 0;
    while (room < bytes && is_usable(a, b)) {
        room += a->blocks[b].size_bytes;
        b = a->blocks[b].next;
    }
    return room >= bytes;
}

/* Address space for 9/8 of the card. 0: `wanted_bytes` are more than that. */
static int new_space(struct tmk_caching_allocator *a, uint32_t lane, uint64_t wanted_bytes,
                     uint32_t *ret_block)
{
    uint64_t card = a->setup.card_bytes ? a->setup.card_bytes : unknown_card_bytes;
    uint64_t page = tmk_alloc_page_bytes(&a->setup.conf, a->lanes[lane].is_small);
    uint64_t bytes = (card + card / 8 + page - 1) / page * page;
    uint64_t address = wanted_bytes > bytes ? 0 : tmk_caching_address(a, bytes);
    if (!address)
        return 0;
    struct block block = {.address = address,
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

/* The first block of the lowest run of free and unmapped ones that has room. */
static int find_room(struct tmk_caching_allocator *a, uint32_t lane, uint64_t bytes,
                     uint32_t *ret_block)
{
    const struct tmk_free_set *set = &a->lanes[lane].unmapped;
    struct tmk_free_cursor c = tmk_free_set_begin();
    for (; !tmk_free_set_is_end(set, c); tmk_free_set_next(set, &c)) {
        uint32_t b = tmk_free_set_block(set, c);
        if (is_usable(a, a->blocks[b].prev))
            b = a->blocks[b].prev;
        if (has_room(a, b, bytes)) {
            *ret_block = b;
            return 1;
        }
    }
    return new_space(a, lane, bytes, ret_block);
}

/* Map the first `bytes` of an unmapped block, in whole pages, and merge it with what is free beside
 * it. 0 or TMK_ENOMEM. */
static int map_pages(struct tmk_caching_allocator *a, uint32_t b, uint64_t bytes)
{
    uint64_t page = page_of(a, block_at(a, b));
    uint64_t mapped = (bytes + page - 1) / page * page;
    tmk_caching_remove(a, b);
    if (mapped < block_at(a, b)->size_bytes) {
        uint32_t rest = tmk_caching_new_block(a, block_at(a, b));
        if (!rest)
            return TMK_ENOMEM;
        struct block *block = block_at(a, b), *r = block_at(a, rest);
        r->address += mapped;
        r->size_bytes -= mapped;
        r->prev = b;
        if (r->next)
            block_at(a, r->next)->prev = rest;
        block->next = rest;
        block->size_bytes = mapped;
        if (tmk_caching_insert(a, rest) < 0)
            return TMK_ENOMEM;
    }
    block_at(a, b)->is_mapped = true;
    tmk_caching_merge(a, b, block_at(a, b)->prev);
    tmk_caching_merge(a, b, block_at(a, b)->next);
    tmk_caching_reserve(a, mapped);
    return tmk_caching_insert(a, b);
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

int tmk_caching_expand(struct tmk_caching_allocator *a, uint32_t lane, uint64_t bytes,
                       uint32_t *ret_block)
{
    uint32_t b;
    int rc = find_room(a, lane, bytes, &b);
    if (rc <= 0)
        return rc;
    if (!block_at(a, b)->is_mapped)
        rc = map_pages(a, b, least_of(block_at(a, b)->size_bytes, bytes));
    while (rc >= 0 && block_at(a, b)->size_bytes < bytes) {
        uint64_t missing = bytes - block_at(a, b)->size_bytes;
        b = block_at(a, b)->next; /* unmapped; it takes the free one before it in */
        rc = map_pages(a, b, least_of(block_at(a, b)->size_bytes, missing));
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
    uint32_t part = tmk_caching_new_block(a, block_at(a, b));
    if (!part)
        return TMK_ENOMEM;
    struct block *block = block_at(a, b), *p = block_at(a, part);
    p->address = address;
    p->size_bytes = bytes;
    if (address == block->address) {
        p->next = b;
        if (p->prev)
            block_at(a, p->prev)->next = part;
        block->prev = part;
    } else {
        p->prev = b;
        if (p->next)
            block_at(a, p->next)->prev = part;
        block->next = part;
    }
    return tmk_caching_insert(a, part);
}

int tmk_caching_unmap(struct tmk_caching_allocator *a, uint32_t b)
{
    const struct block was = *block_at(a, b);
    uint64_t page = page_of(a, &was), end = was.address + was.size_bytes;
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
    struct block *block = block_at(a, b);
    block->address = from;
    block->size_bytes = until - from;
    block->is_mapped = false;
    tmk_caching_merge(a, b, block->prev);
    tmk_caching_merge(a, b, block->next);
    tmk_caching_unreserve(a, until - from);
    if (!block->prev && !block->next) { /* nothing of the segment is mapped: it goes */
        tmk_caching_drop_block(a, b);
        return 0;
    }
    return tmk_caching_insert(a, b);
}
