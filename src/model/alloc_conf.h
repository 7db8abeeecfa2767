/* SPDX-License-Identifier: MIT */
/* model/alloc_conf.h - settings of PyTorch's caching allocator, and the stateless rules that follow
 * from them: how a request is rounded, how large a new segment is, whether a block is split.
 *
 * The settings are read from the text of PYTORCH_CUDA_ALLOC_CONF (PYTORCH_ALLOC_CONF):
 * "key:value,key:value". The rules are torch 2.11's; a text that it rejects is rejected here. */
#ifndef TMK_MODEL_ALLOC_CONF_H
#define TMK_MODEL_ALLOC_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define TMK_ALLOC_NO_BOUND UINT64_MAX

enum {
    TMK_ALLOC_UNIT = 512,               /* every block is a multiple of it */
    TMK_ALLOC_SMALL = 1 << 20,          /* the largest block of the small pool */
    TMK_ALLOC_SMALL_SEGMENT = 2 << 20,  /* segments of the small pool */
    TMK_ALLOC_LARGE_SEGMENT = 20 << 20, /* segments of the large pool, for requests below ... */
    TMK_ALLOC_OWN_SEGMENT = 10 << 20,   /* ... this; a larger request gets a segment of its own, */
    TMK_ALLOC_ROUND_SEGMENT = 2 << 20,  /* rounded up to a multiple of this */
    TMK_ALLOC_N_INTERVALS = 16, /* intervals of roundup_power2_divisions: 1 MiB, 2 MiB ... */
};

struct tmk_alloc_conf {
    uint64_t max_split_bytes; /* TMK_ALLOC_NO_BOUND: all blocks may be split */
    uint64_t max_non_split_rounding_bytes;
    uint64_t large_segment_bytes; /* 20 MiB; above TMK_ALLOC_OWN_SEGMENT */
    double gc_threshold;          /* 0: no garbage collection */
    double memory_fraction;       /* of the GPU's memory; 1: torch sets no limit */
    uint64_t roundup_divisions[TMK_ALLOC_N_INTERVALS]; /* 0: none */
    bool expandable_segments;
    bool is_async; /* backend:cudaMallocAsync: these rules do not apply */
};

/* Set torch's defaults. */
void tmk_alloc_conf_init(struct tmk_alloc_conf *conf);
/* Read the defaults as changed by `text` (NULL and "" change nothing). 0, or TMK_EINVAL: *ret_conf
 * is untouched and *err says what torch would reject. Options that do not matter here (pinned_...)
 * are accepted. */
int tmk_alloc_conf_parse(const char *text, struct tmk_alloc_conf *ret_conf, struct tmk_error *err);

/* The block size that a request of `bytes` is rounded to. */
uint64_t tmk_alloc_round(const struct tmk_alloc_conf *conf, uint64_t bytes);
/* Whether a rounded size belongs to the small pool. */
static inline bool tmk_alloc_is_small(uint64_t rounded)
{
    return rounded <= TMK_ALLOC_SMALL;
}
/* The size of a new segment for a rounded size that no cached block serves (without expandable
 * segments); at least that size. */
uint64_t tmk_alloc_segment_bytes(const struct tmk_alloc_conf *conf, uint64_t rounded);
/* Whether a block of `block_bytes` is split when it serves a rounded size. */
bool tmk_alloc_should_split(const struct tmk_alloc_conf *conf, uint64_t block_bytes,
                            uint64_t rounded);
/* Bytes that the pool of a rounded size maps at a time, with expandable segments. */
uint64_t tmk_alloc_page_bytes(const struct tmk_alloc_conf *conf, bool is_small);

#endif
