/* SPDX-License-Identifier: MIT */
/* passes/frag/fragmentation.h - what the framework's allocator has reserved of a device at one
 * moment and does not use, computed from the addresses of real blocks in real segments.
 *
 * A gap between two blocks of a segment is one free block of PyTorch's caching allocator, which
 * joins neighbours as soon as they are free. Segments of 2 MiB are its small pool and serve
 * requests of up to 1 MiB; all others are the large one. Mappings (expandable segments) that
 * follow each other without a hole are one segment. Where the driver's segments were not seen
 * (attach, other backends) the reserved totals may still be known, and nothing else:
 * TMK_BYTES_UNKNOWN. */
#ifndef TMK_PASSES_FRAG_FRAGMENTATION_H
#define TMK_PASSES_FRAG_FRAGMENTATION_H

#include "model/run.h"
#include "passes/frag/frag_moment.h"
#include "passes/group.h"
#include "trace/replay.h"

enum tmk_frag_pool { TMK_FRAG_SMALL, TMK_FRAG_LARGE };

/* Sums of a device, or of one of its pools on one stream. TMK_BYTES_UNKNOWN where a comment says
 * unknown. */
struct tmk_frag_sum {
    uint64_t reserved_bytes;    /* unknown: the framework has not told, and no segment was seen */
    uint64_t allocated_bytes;   /* in blocks */
    uint64_t free_bytes;        /* cached; unknown with reserved */
    uint64_t largest_bytes;     /* the largest free block; unknown without segments */
    uint64_t allocatable_bytes; /* the largest request that would be served from the cache */
    uint64_t n_segments, n_blocks, n_free;
    uint64_t whole_bytes; /* what empty_cache() would give back: segments without a block, and whole
                             pages of expandable ones */
};

struct tmk_frag_pool_row {
    enum tmk_frag_pool pool;
    bool has_stream; /* else no block tells which stream the segment serves */
    uint16_t stream; /* number of a definition */
    struct tmk_frag_sum sum;
};

/* A segment, or mappings that lie side by side. */
struct tmk_frag_segment {
    uint64_t address, size_bytes, free_bytes, largest_bytes;
    uint64_t n_blocks;
    uint64_t first_block; /* number of its first block, for tmk_fragmentation_block() */
    enum tmk_frag_pool pool;
    bool is_expandable;
    uint64_t page_bytes; /* of an expandable one: the unit of mapping */
};

struct tmk_frag_device {
    uint16_t device;
    uint64_t time_ns;       /* trace time of the moment */
    int64_t step;           /* TMK_NO_STEP: before the first */
    bool is_oom;            /* the moment is an OOM */
    uint64_t request_bytes; /* of that OOM */
    bool has_segments;      /* else nothing is known but totals */
    struct tmk_frag_sum sum;
    uint64_t outside_bytes;  /* in blocks that lie in no known segment */
    uint64_t capacity_bytes; /* of the device; unknown */
    /* The largest request that would succeed if the allocator gave its whole segments back and
     * took all that the device had left; unknown without capacity. */
    uint64_t allocatable_new_bytes;
    const struct tmk_frag_pool_row *pools;
    uint64_t n_pools;
    const struct tmk_frag_segment *segments; /* most free bytes first */
    uint64_t n_segments;
};

struct tmk_fragmentation; /* the pass, then its result */

/* Returns 0 or TMK_ENOMEM. Visit, finish with the replay, then ask. */
int tmk_fragmentation_open(const struct tmk_process *p, const struct tmk_frag_moment *moment,
                           struct tmk_fragmentation **ret_frag);
struct tmk_fragmentation *tmk_fragmentation_close(struct tmk_fragmentation *f);
struct tmk_visitor tmk_fragmentation_visitor(struct tmk_fragmentation *f);
int tmk_fragmentation_finish(struct tmk_fragmentation *f, const struct tmk_replay *rp,
                             struct tmk_error *err);

/* The devices on which the moment came, most reserved first; borrowed until close. */
uint64_t tmk_fragmentation_n(const struct tmk_fragmentation *f);
const struct tmk_frag_device *tmk_fragmentation_get(const struct tmk_fragmentation *f, uint64_t i);
/* A block of one of the device's segments, ordered by address. It is settled and borrowed until
 * close. */
const struct tmk_block *tmk_fragmentation_block(const struct tmk_fragmentation *f, uint64_t device,
                                                uint64_t i);
/* Find the segments that a few blocks pin: at least half is free, and not all. Writes at most
 * `max` to `ret`, most free bytes first; returns how many there are. */
uint64_t tmk_fragmentation_pinned(const struct tmk_fragmentation *f, uint64_t device,
                                  const struct tmk_frag_segment **ret, uint64_t max);
/* The names of its blocks' contexts. */
const struct tmk_labels *tmk_fragmentation_labels(const struct tmk_fragmentation *f);

#endif
