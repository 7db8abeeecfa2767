/* SPDX-License-Identifier: MIT */
/* model/caching_allocator.h - a model of PyTorch's native CUDA caching allocator: it hands out
 * made-up addresses and counts bytes, exactly as torch 2.11 would on one device.
 *
 * It models best fit by (size, address) per stream in a small and a large pool, splitting and
 * merging, oversize blocks (max_split_size_mb), garbage collection, expandable segments mapped page
 * by page, and free-and-retry at the limit. Settings and stateless rules are in alloc_conf.h.
 *
 * The limit is torch's own (set_per_process_memory_fraction): it is checked before the driver is
 * asked. Nothing here reads a clock or a device, so the same calls always give the same figures. */
#ifndef TMK_MODEL_CACHING_ALLOCATOR_H
#define TMK_MODEL_CACHING_ALLOCATOR_H

#include "model/alloc_conf.h"
#include "model/driver_space.h"

struct tmk_caching_allocator;

enum { TMK_CACHING_NONE = 0 }; /* no block */

struct tmk_caching_setup {
    struct tmk_alloc_conf conf;
    uint64_t limit_bytes; /* TMK_ALLOC_NO_BOUND: none */
    uint64_t card_bytes; /* the address space of an expandable segment is 9/8 of it; 0: not known */
    /* The recorded segments of the driver, in order: as long as the model asks for the same ones,
     * they get the same addresses. NULL: addresses are made up. Borrowed until close. */
    const struct tmk_space_event *places;
    uint64_t n_places;
    uint64_t top; /* highest address of segments, see driver_space.h; 0: anywhere */
};

struct tmk_caching_stats {
    uint64_t allocated_bytes, peak_allocated_bytes;
    uint64_t reserved_bytes, peak_reserved_bytes;
    uint64_t n_segments, peak_segments; /* without expandable ones, as torch counts */
    uint64_t n_retries; /* all cached segments were released, and the driver was asked again */
    uint64_t n_ooms;
    uint64_t n_syncs; /* times that everything cached was released */
};

/* Open and close a model. 0 or TMK_ENOMEM; close takes NULL and returns NULL. */
int tmk_caching_open(const struct tmk_caching_setup *setup,
                     struct tmk_caching_allocator **ret_allocator);
struct tmk_caching_allocator *tmk_caching_close(struct tmk_caching_allocator *a);

/* Add a segment that exists before the first call, with its blocks, ordered by address without
 * overlap. Their numbers go to `ret_blocks`. Expandable segments cannot be seeded. 0 or
 * TMK_ENOMEM. */
struct tmk_caching_seed {
    uint64_t address;
    uint64_t size_bytes;
};
int tmk_caching_seed(struct tmk_caching_allocator *a, const struct tmk_caching_seed *segment,
                     uint32_t stream, const struct tmk_caching_seed *blocks, uint64_t n,
                     uint32_t *ret_blocks);

/* Allocate. 1: *ret_block is a block of at least `bytes`, valid until its free is complete. 0: out
 * of memory, after everything cached was released. TMK_ENOMEM: tidemark itself has no memory. */
int tmk_caching_malloc(struct tmk_caching_allocator *a, uint64_t bytes, uint32_t stream,
                       uint32_t *ret_block);
/* Free a block; it may be handed out again. 0 or TMK_ENOMEM. */
int tmk_caching_free(struct tmk_caching_allocator *a, uint32_t block);
/* Free a block in two steps: the free is requested while another stream still uses the block
 * (record_stream), and completed later. Releasing everything cached (counted by n_syncs) completes
 * all requested frees at once. So compare n_syncs before completing a block: it may have been
 * handed out again. */
int tmk_caching_free_requested(struct tmk_caching_allocator *a, uint32_t block);
int tmk_caching_free_completed(struct tmk_caching_allocator *a, uint32_t block);
/* torch.cuda.empty_cache(). */
int tmk_caching_empty_cache(struct tmk_caching_allocator *a);

/* Take a hint about addresses that others use from now on. 0 or TMK_ENOMEM. */
int tmk_caching_heed(struct tmk_caching_allocator *a, const struct tmk_space_hint *hint);

const struct tmk_caching_stats *tmk_caching_stats(const struct tmk_caching_allocator *a);

/* The invariants (base/valid.h), unless a call returned TMK_ENOMEM, after which only close() may
 * follow:
 *   - each block but number 0 is in a segment, or on the list of dead ones;
 *   - addresses and sizes are multiples of 512; prev and next name each other, lie end to end, and
 *     belong to the same lane and segment; two free ones that are mapped alike are not neighbours;
 *   - an expandable segment is covered by its blocks from start to end, and what is not mapped of
 *     it is whole pages;
 *   - a free block is in the set of its lane, under its size and address, and no other block is in
 *     any set; the sets are valid;
 *   - a block that is pending is on the list of those, once; an allocated one is not pending;
 *   - bytes and segments that are counted are those of the blocks, and no more than their peaks;
 *   - the driver's space has each segment, with the same bytes together. */
bool tmk_caching_is_valid(const struct tmk_caching_allocator *a);
uint64_t tmk_caching_check_cost(const struct tmk_caching_allocator *a); /* in items */

#endif
