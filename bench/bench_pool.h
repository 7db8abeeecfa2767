/* SPDX-License-Identifier: MIT */
/* bench_pool.h - a small model of a caching GPU allocator, for its addresses.
 *
 * What matters to a trace is which addresses come again, and how often. So: segments of 2 MiB for
 * small blocks, 20 MiB for middle ones, one of its own for a large block; best fit; blocks are
 * split and joined with their free neighbours; nothing ever goes back to the device. */
#ifndef TMK_BENCH_POOL_H
#define TMK_BENCH_POOL_H

#include <stdint.h>

struct tmk_bench_pool;

/* NULL without memory. close takes NULL, returns NULL. */
struct tmk_bench_pool *tmk_bench_pool_open(void);
struct tmk_bench_pool *tmk_bench_pool_close(struct tmk_bench_pool *p);

struct tmk_bench_block {
    uint64_t address;
    uint64_t size_bytes; /* rounded up to 512 */
    uint32_t handle;     /* never 0 */
};

/* Hand out a block, take one back. A benchmark without memory is over: both exit then. */
struct tmk_bench_block tmk_bench_pool_take(struct tmk_bench_pool *p, uint64_t size_bytes);
void tmk_bench_pool_give(struct tmk_bench_pool *p, uint32_t handle);

#endif
