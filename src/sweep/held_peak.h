/* SPDX-License-Identifier: MIT */
/* sweep/held_peak.h - most that a process had of a card's driver, and who in it: the measure of
 * programs whose memory no framework's allocator hands out (JAX, CuPy, CUDA C). A pass for one
 * sweep.
 */
#ifndef TMK_SWEEP_HELD_PEAK_H
#define TMK_SWEEP_HELD_PEAK_H

#include "passes/segment_sums.h"
#include "trace/replay.h"

struct tmk_held_peak {
    struct tmk_segment_sums *now;
    bool found;
    int64_t step;
    struct tmk_device_sums peak; /* of the card with the largest; owners by the sums' numbers */
};

/* 0 or TMK_ENOMEM; fini takes a zeroed one. */
int tmk_held_peak_init(struct tmk_held_peak *h, const struct tmk_process *p);
void tmk_held_peak_fini(struct tmk_held_peak *h);
struct tmk_visitor tmk_held_peak_visitor(struct tmk_held_peak *h);

/* Name of an owner, by number; "unknown" where the stack does not tell. Borrowed until fini. */
const char *tmk_held_peak_owner(const struct tmk_held_peak *h, uint32_t owner);

#endif
