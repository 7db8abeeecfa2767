/* SPDX-License-Identifier: MIT */
/* model/driver_space.h - where CUDA's driver puts what cudaMalloc gives: the addresses.
 *
 * They decide ties of best fit, so a model without them is a little off. Seen with the drivers of
 * 2024-2026, not documented:
 *   - address space is taken in ranges of a multiple of 32 MiB, a range for one segment, which lies
 *     at its low end; a range is given up with the last segment in it;
 *   - what is left of ranges serves later segments that fit, the lowest address first;
 *   - a new range goes to the top of the highest gap that has 32 MiB more than it needs (the
 *     kernel's mmap, aligned), so mostly below all others.
 * Segments and their sizes are multiples of 2 MiB. */
#ifndef TMK_MODEL_DRIVER_SPACE_H
#define TMK_MODEL_DRIVER_SPACE_H

#include <stdbool.h>
#include <stdint.h>

struct tmk_space_piece {
    uint64_t address;
    uint64_t size_bytes;
};

struct tmk_space_list { /* by address */
    struct tmk_space_piece *pieces;
    uint64_t n, room;
};

struct tmk_driver_space {
    struct tmk_space_list ranges;
    struct tmk_space_list segments;
};

/* A zeroed space is an empty one. */
void tmk_driver_space_fini(struct tmk_driver_space *s);
/* Where the driver puts a new segment. 0: there is no room, or no memory. */
uint64_t tmk_driver_space_alloc(struct tmk_driver_space *s, uint64_t bytes);
/* One that is known to be at an address. 0 or TMK_ENOMEM. */
int tmk_driver_space_put(struct tmk_driver_space *s, uint64_t address, uint64_t bytes);
void tmk_driver_space_free(struct tmk_driver_space *s, uint64_t address);

#endif
