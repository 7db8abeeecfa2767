/* SPDX-License-Identifier: MIT */
/* passes/whatif/whatif_sizes.h - estimates what was requested where only block sizes were
 * recorded.
 *
 * A large block is as large as its request rounded to 512 bytes, unless the free block that it
 * was taken from was at most 1 MiB larger: then it got all of it. The layout shows which blocks
 * got all: they end where the next block or the segment does. For those, another block's size
 * stands in: one that was cut, comes from the same stack in the same step and is at most 1 MiB
 * smaller, the nearest in time, since layers repeat themselves. Without one, the block's own
 * size remains. */
#ifndef TMK_PASSES_WHATIF_WHATIF_SIZES_H
#define TMK_PASSES_WHATIF_WHATIF_SIZES_H

#include <stdbool.h>
#include <stdint.h>

struct tmk_whatif_sizes;

/* Returns 0 or TMK_ENOMEM. close takes NULL and returns NULL. */
int tmk_whatif_sizes_open(struct tmk_whatif_sizes **ret_sizes);
struct tmk_whatif_sizes *tmk_whatif_sizes_close(struct tmk_whatif_sizes *z);

/* Each returns 0 or TMK_ENOMEM. `key` is the caller's; resolve hands it back. */
int tmk_whatif_sizes_segment(struct tmk_whatif_sizes *z, uint64_t address, uint64_t bytes);
void tmk_whatif_sizes_segment_end(struct tmk_whatif_sizes *z, uint64_t address);
int tmk_whatif_sizes_alloc(struct tmk_whatif_sizes *z, uint64_t address, uint64_t bytes,
                           uint32_t stack, int64_t step, uint64_t key);
void tmk_whatif_sizes_free(struct tmk_whatif_sizes *z, uint64_t address);

/* Report each block with a request smaller than its size. Returns 0 or TMK_ENOMEM. */
int tmk_whatif_sizes_resolve(struct tmk_whatif_sizes *z,
                             void (*tell)(void *arg, uint64_t key, uint64_t bytes), void *arg);

#endif
