/* SPDX-License-Identifier: MIT */
/* model/driver_space.h - the addresses that CUDA's driver gives to cudaMalloc.
 *
 * Addresses decide ties of best fit, so a model without them is a little off. The rules were
 * observed with drivers of 2024-2026; they are not documented:
 *   - address space is taken in ranges of a multiple of 32 MiB, a range for one segment, which lies
 *     at its low end; a range is released with the last segment in it;
 *   - the rest of a range serves later segments that fit, the lowest address first;
 *   - a new range goes to the top of the highest gap that has 32 MiB more than it needs (the
 *     kernel's mmap, aligned), so mostly below all others.
 * Others use the same space: libraries' memory lies in the way, and the context leaves room in
 * ranges of its own. Where a trace has the addresses, tmk_driver_space_learn() finds both from
 * deviations, and a replay takes the hints when it gets there.
 *
 * Segments and their sizes are multiples of 2 MiB. */
#ifndef TMK_MODEL_DRIVER_SPACE_H
#define TMK_MODEL_DRIVER_SPACE_H

#include <stdbool.h>
#include <stdint.h>

/* A segment that began or ended during the recording. */
struct tmk_space_event {
    uint64_t address;
    uint64_t size_bytes; /* 0: it ended */
    uint64_t at;         /* when, in the caller's count */
};

/* A hint about others' use of the address space. */
struct tmk_space_hint {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t at;  /* valid from then on */
    bool is_room; /* free for segments; else taken */
};

struct tmk_space_hints {
    struct tmk_space_hint *items; /* by `at` */
    uint64_t n, room;
    uint64_t top; /* new ranges lie below; 0: not known */
};

struct tmk_space_piece {
    uint64_t address;
    uint64_t size_bytes;
    bool is_others;
};

struct tmk_space_list { /* by address */
    struct tmk_space_piece *pieces;
    uint64_t n, room;
};

struct tmk_driver_space {
    struct tmk_space_list ranges;
    struct tmk_space_list segments;
    uint64_t top; /* 0: anywhere */
};

/* A zeroed space is an empty one. */
void tmk_driver_space_fini(struct tmk_driver_space *s);
/* Place a new segment as the driver would. 0: there is no room, or no memory. */
uint64_t tmk_driver_space_alloc(struct tmk_driver_space *s, uint64_t bytes);
/* Add a segment at a known address. 0 or TMK_ENOMEM. */
int tmk_driver_space_put(struct tmk_driver_space *s, uint64_t address, uint64_t bytes);
void tmk_driver_space_free(struct tmk_driver_space *s, uint64_t address);

/* Learn hints about others from recorded segments. 0 or TMK_ENOMEM; zero the hints before, fini
 * them after. */
int tmk_driver_space_learn(const struct tmk_space_event *events, uint64_t n,
                           struct tmk_space_hints *ret_hints);
void tmk_space_hints_fini(struct tmk_space_hints *hints);
/* Apply a hint, unless a segment lies there by now. 0 or TMK_ENOMEM. */
int tmk_driver_space_heed(struct tmk_driver_space *s, const struct tmk_space_hint *hint);

/* The invariants (base/valid.h):
 *   - ranges and segments lie in order of address;
 *   - no range touches another;
 *   - each segment begins in a range. */
bool tmk_driver_space_is_valid(const struct tmk_driver_space *s);
/* No segment touches another. That holds where all were placed by alloc(), while recorded ones may
 * lie anywhere. */
bool tmk_driver_space_is_apart(const struct tmk_driver_space *s);

#endif
