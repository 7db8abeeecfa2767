/* SPDX-License-Identifier: MIT */
/* model/alloc_conf.h - settings of PyTorch's caching allocator, and the rules that follow from them
 * without any state: what a request is rounded to, what a new segment has, whether a block is cut.
 *
 * The text is that of PYTORCH_CUDA_ALLOC_CONF (PYTORCH_ALLOC_CONF): "key:value,key:value". Rules
 * are those of torch 2.11; what it refuses is refused here. */
#ifndef TMK_MODEL_ALLOC_CONF_H
#define TMK_MODEL_ALLOC_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define TMK_ALLOC_NO_BOUND UINT64_MAX

enum {
    TMK_ALLOC_UNIT = 512,               /* every block is a multiple of it */
    TMK_ALLOC_SMALL = 1 << 20,          /* the largest block of the small pool */
    TMK_ALLOC_SMALL_SEGMENT = 2 << 20,  /* what the small pool takes of the driver at a time */
    TMK_ALLOC_LARGE_SEGMENT = 20 << 20, /* the large pool, for requests below ... */
    TMK_ALLOC_OWN_SEGMENT = 10 << 20,   /* ... this; from here on a segment of its own */
    TMK_ALLOC_ROUND_SEGMENT = 2 << 20,  /* of a multiple of this */
    TMK_ALLOC_N_INTERVALS = 16,         /* of roundup_power2_divisions: 1 MiB, 2 MiB ... */
};

struct tmk_alloc_conf {
    uint64_t max_split_bytes; /* TMK_ALLOC_NO_BOUND: all blocks may be cut */
    uint64_t max_non_split_rounding_bytes;
    uint64_t large_segment_bytes;                      /* 20 MiB; above TMK_ALLOC_OWN_SEGMENT */
    double gc_threshold;                               /* 0: no garbage collection */
    double memory_fraction;                            /* of the card, 1: no limit of torch's own */
    uint64_t roundup_divisions[TMK_ALLOC_N_INTERVALS]; /* 0: none */
    bool expandable_segments;
    bool is_async; /* backend:cudaMallocAsync: none of this holds */
};

/* torch's defaults. */
void tmk_alloc_conf_init(struct tmk_alloc_conf *conf);
/* Defaults changed by `text` (NULL and "": nothing). 0; TMK_EINVAL: *ret_conf is untouched and *err
 * says what torch would not take. Options that do not matter here (pinned_...) are accepted. */
int tmk_alloc_conf_parse(const char *text, struct tmk_alloc_conf *ret_conf, struct tmk_error *err);

/* The block that a request of `bytes` gets, before it is looked for. */
uint64_t tmk_alloc_round(const struct tmk_alloc_conf *conf, uint64_t bytes);
/* Is a rounded size of the small pool? */
static inline bool tmk_alloc_is_small(uint64_t rounded)
{
    return rounded <= TMK_ALLOC_SMALL;
}
/* What is asked of the driver for a rounded size that no cached block serves (not expandable); at
 * least that size. */
uint64_t tmk_alloc_segment_bytes(const struct tmk_alloc_conf *conf, uint64_t rounded);
/* Is a found block of `block_bytes` cut, for a rounded size that it serves? */
bool tmk_alloc_should_split(const struct tmk_alloc_conf *conf, uint64_t block_bytes,
                            uint64_t rounded);
/* Bytes that the pool of a rounded size maps at a time, with expandable segments. */
uint64_t tmk_alloc_page_bytes(const struct tmk_alloc_conf *conf, bool is_small);

#endif
