/* SPDX-License-Identifier: MIT */
/* passes/frag/fragmentation.h - what the framework's allocator holds of a device at one moment and
 * does not use: from real blocks that lie, by address, in real segments.
 *
 * A gap between two blocks of a segment is one free block of PyTorch's caching allocator, which
 * joins neighbours as soon as they are free. Segments of 2 MiB are its small pool and serve
 * requests of up to 1 MiB, all others are the large one. Mappings (expandable segments) that follow
 * each other without a hole are one segment. Where the driver's segments were not seen (attach,
 * other backends) reserved totals may still be known, and nothing else: TMK_BYTES_UNKNOWN. */
#ifndef TMK_PASSES_FRAG_FRAGMENTATION_H
#define TMK_PASSES_FRAG_FRAGMENTATION_H

#include "model/run.h"
#include "passes/group.h"
#include "trace/replay.h"

enum tmk_frag_kind {
    TMK_FRAG_WORST, /* the last refused allocation; without one, the first time that most was
                     * reserved; where that is not known, that most was allocated */
    TMK_FRAG_TIME,  /* after the last event not later than `time_ns` (trace time) */
    TMK_FRAG_STEP,  /* the first time that most was allocated within step `step` */
};

struct tmk_frag_moment {
    enum tmk_frag_kind kind;
    uint64_t time_ns;
    int64_t step;
};

enum tmk_frag_pool { TMK_FRAG_SMALL, TMK_FRAG_LARGE };

/* Of a device, or of one of its pools on one stream. TMK_BYTES_UNKNOWN where it says so. */
struct tmk_frag_sum {
    uint64_t reserved_bytes;    /* unknown: the framework has not told, and no segment was seen */
    uint64_t allocated_bytes;   /* in blocks */
    uint64_t free_bytes;        /* in the cache; unknown with reserved */
    uint64_t largest_bytes;     /* the largest free block; unknown without segments */
    uint64_t allocatable_bytes; /* the largest request that would be served from the cache */
    uint64_t n_segments, n_blocks, n_free;
    uint64_t whole_bytes; /* that empty_cache() would give back: segments without a block, of
                           * expandable ones whole pages */
};

struct tmk_frag_pool_row {
    enum tmk_frag_pool pool;
    bool has_stream; /* else no block tells whose the segment is */
    uint16_t stream; /* number of a definition */
    struct tmk_frag_sum sum;
};

/* A segment, or mappings that lie side by side. */
struct tmk_frag_segment {
    uint64_t address, size_bytes, free_bytes, largest_bytes;
    uint64_t n_blocks;
    uint64_t first_block; /* its blocks are so many from here on (tmk_fragmentation_block) */
    enum tmk_frag_pool pool;
    bool is_expandable;
    uint64_t page_bytes; /* of an expandable one: what is mapped at once */
};

struct tmk_frag_device {
    uint16_t device;
    uint64_t time_ns;       /* trace time of the moment */
    int64_t step;           /* TMK_NO_STEP: before the first */
    bool is_oom;            /* the moment is a refused allocation */
    uint64_t request_bytes; /* of it */
    bool has_segments;      /* else nothing is known but totals */
    struct tmk_frag_sum sum;
    uint64_t outside_bytes;  /* in blocks that lie in no segment seen */
    uint64_t capacity_bytes; /* of the device; unknown */
    /* The largest request that would succeed if the allocator gave its whole segments back and took
     * all that the device had left; unknown without capacity. */
    uint64_t allocatable_new_bytes;
    const struct tmk_frag_pool_row *pools;
    uint64_t n_pools;
    const struct tmk_frag_segment *segments; /* most free bytes first */
    uint64_t n_segments;
};

struct tmk_fragmentation; /* the pass, then its result */

/* 0 or TMK_ENOMEM. Visit, finish with the replay, then ask. */
int tmk_fragmentation_open(const struct tmk_process *p, const struct tmk_frag_moment *moment,
                           struct tmk_fragmentation **ret_frag);
struct tmk_fragmentation *tmk_fragmentation_close(struct tmk_fragmentation *f);
struct tmk_visitor tmk_fragmentation_visitor(struct tmk_fragmentation *f);
int tmk_fragmentation_finish(struct tmk_fragmentation *f, const struct tmk_replay *rp,
                             struct tmk_error *err);

/* Devices at which the moment came, most reserved first; borrowed until close. */
uint64_t tmk_fragmentation_n(const struct tmk_fragmentation *f);
const struct tmk_frag_device *tmk_fragmentation_get(const struct tmk_fragmentation *f, uint64_t i);
/* A block of one of its segments, ordered by address. Settled; borrowed until close. */
const struct tmk_block *tmk_fragmentation_block(const struct tmk_fragmentation *f, uint64_t device,
                                                uint64_t i);
/* The segments that a few blocks keep: at least half is free, and not all. Written to `ret`, the
 * most free bytes first, at most `max`; returns how many there are. */
uint64_t tmk_fragmentation_pinned(const struct tmk_fragmentation *f, uint64_t device,
                                  const struct tmk_frag_segment **ret, uint64_t max);
/* Names of contexts of its blocks. */
const struct tmk_labels *tmk_fragmentation_labels(const struct tmk_fragmentation *f);

#endif
