/* SPDX-License-Identifier: MIT */
/* tinytrain_mem.h - the one allocator of tinytrain: every tensor comes from here and goes back.
 *
 *     float *out = tt_new(TIDEMARK_ACTIVATION, n * sizeof(float), "blocks.0.mlp.fc1", "out");
 *     ...
 *     out = tt_free(out);
 *
 * It tells tidemark of each block, and keeps exact counts of its own, so that what tidemark says
 * can be checked against what the program knows. Any thread may call. */
#ifndef TINYTRAIN_MEM_H
#define TINYTRAIN_MEM_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tidemark/tidemark.h"

enum { TT_N_CATEGORIES = TIDEMARK_KV_CACHE + 1 };

struct tt_mem_counts {
    uint64_t n_allocations;
    uint64_t n_frees;
    uint64_t live_bytes;
    uint64_t live_by_category[TT_N_CATEGORIES];
    uint64_t peak_bytes;                        /* the most that ever lived at once... */
    uint64_t peak_by_category[TT_N_CATEGORIES]; /* ...and what it was when it was first reached */
};

/* Refuse to let more than `limit_bytes` live at once; 0: no limit. Call before tt_new(). */
void tt_mem_limit(uint64_t limit_bytes);

/* A block of `size_bytes`, not cleared, tagged `category` and "owner.what". Never NULL: memory that
 * cannot be had ends the program with status 1, nothing freed, as a training that runs out does. */
#define tt_new(category, size_bytes, owner, what)                                                  \
    tt_mem_new(category, size_bytes, owner, what,                                                  \
               &(const struct tidemark_site){__FILE__, __func__, __LINE__, 0})
void *tt_mem_new(enum tidemark_category category, size_t size_bytes, const char *owner,
                 const char *what, const struct tidemark_site *site);

/* Give a block back; takes NULL. Returns NULL: `out = tt_free(out);` */
void *tt_free(void *block);

/* The counts so far. Exact when no other thread allocates: at the end, or after running out. */
const struct tt_mem_counts *tt_mem_counts_get(void);

/* Print them as one line of JSON. */
void tt_mem_counts_print(FILE *file);

#endif
