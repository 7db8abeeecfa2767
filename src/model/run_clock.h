/* SPDX-License-Identifier: MIT */
/* model/run_clock.h - puts the processes of a run on one clock.
 *
 * Processes of one boot share CLOCK_MONOTONIC, so their times are exact whatever happened to the
 * time of day. Hosts are put together by their time of day, which NTP keeps within milliseconds at
 * best. Training in step says more: when ranks of two hosts begin the same steps, the median of the
 * differences is how far apart the clocks are, and their spread is how exactly that is known.
 * Clocks that are clearly apart by that measure are moved together. */
#ifndef TMK_MODEL_RUN_CLOCK_H
#define TMK_MODEL_RUN_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct tmk_process;

/* How well the clocks of a run's hosts agree. */
struct tmk_clock_match {
    uint32_t n_hosts;    /* or boots of them; 1: all times are exact */
    uint32_t n_measured; /* hosts that steps were compared for; the others rely on NTP */
    uint32_t n_steps;    /* the fewest steps that one of them was compared in */
    uint64_t within_ns;  /* of those: nine of ten steps began this close together or closer */
    uint64_t moved_ns;   /* the largest correction; 0: none was needed */
};

/* Set every process's offset_ns, which counts from the start of the first, and *ret. Returns 0 or
 * TMK_ENOMEM. */
int tmk_run_clock_match(struct tmk_process *processes, uint32_t n, struct tmk_clock_match *ret);

#endif
