/* SPDX-License-Identifier: MIT */
/* passes/imbalance/rank_facts.h - what is known of one rank without a replay: its peak, how far it
 * came, how it ended, whether it ran out of memory, and when it will.
 *
 * The figures come from the per-step history, which every trace has in full, and from the last
 * chunks of its events. So a thousand ranks take seconds, and nothing of a rank has to stay in
 * memory but these facts. */
#ifndef TMK_PASSES_IMBALANCE_RANK_FACTS_H
#define TMK_PASSES_IMBALANCE_RANK_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/run.h"
#include "passes/forecast.h"

enum tmk_rank_end {
    TMK_RANK_RUNNING,
    TMK_RANK_CLOSED,  /* the process ended by itself, well or not */
    TMK_RANK_KILLED,  /* a signal ended it; it closed nothing */
    TMK_RANK_STOPPED, /* the recording ended before the process did */
};

/* Times are of the run. */
struct tmk_rank_facts {
    int64_t rank;       /* -1: none */
    int64_t world_size; /* -1: not known */
    const char *host;   /* borrowed from the process */
    uint64_t pid;
    bool has_peak; /* the next four are known; any device, the largest */
    uint16_t device;
    uint64_t peak_bytes, peak_ns;
    int64_t peak_step; /* TMK_NO_STEP: before the first */
    uint64_t n_steps;  /* finished */
    int64_t last_step; /* begun; TMK_NO_STEP: none */
    uint64_t n_allocs;
    uint64_t end_bytes; /* alive at the end, all devices */
    uint64_t end_ns;    /* its last event */
    enum tmk_rank_end end;
    bool has_oom;    /* it ran out of memory and finished no step after that */
    uint64_t oom_ns; /* the first of such OOMs */
    int64_t oom_step;
    struct tmk_forecast forecast; /* of `device`; only with has_peak */
};

/* Read the facts of a process. Returns 0 or TMK_ENOMEM. OOMs are those of the framework's
 * allocator. */
int tmk_rank_facts_read(const struct tmk_process *p, struct tmk_rank_facts *ret);

/* "running", "closed", "killed" or "stopped". */
const char *tmk_rank_end_name(enum tmk_rank_end end);

#endif
