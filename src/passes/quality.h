/* SPDX-License-Identifier: MIT */
/* passes/quality.h - how far a process's figures can be trusted: what was dropped, given up,
 * damaged, and why recording ended. All zero and false: everything is there. */
#ifndef TMK_PASSES_QUALITY_H
#define TMK_PASSES_QUALITY_H

#include "model/run.h"

struct tmk_quality {
    bool live;          /* the process is still writing */
    bool merged;        /* ended from outside; its last events were taken from the ring */
    bool unfinished;    /* neither closed nor live: its last events may be missing */
    enum tmk_stop stop; /* recording ended early, and why */
    int stop_os_error;
    uint64_t n_dropped;       /* events, because the ring was full */
    uint64_t n_given_up;      /* events, to stay under --max-size */
    uint64_t n_untracked;     /* blocks the recorder could not follow */
    uint64_t n_replaced;      /* blocks whose free was never seen */
    uint64_t n_unknown_free;  /* frees of blocks that were never seen */
    uint64_t n_lost_segments; /* of the driver, that found no room */
    uint64_t detail_from_ns;  /* trace time; later than 0 when detail was given up */
    uint32_t n_bad_chunks;    /* unreadable parts of the trace */
    uint64_t n_stray_bytes;   /* of the file that belong to no part */
    uint64_t first_bad_offset;
    bool header_damaged;
};

/* `rp` as a sweep left it. */
struct tmk_quality tmk_quality_of(const struct tmk_process *p, const struct tmk_replay *rp);

/* Nothing is missing and nothing is doubtful (live and merged are fine). */
bool tmk_quality_is_good(const struct tmk_quality *q);

/* Why recording stopped, for people. */
const char *tmk_stop_text(enum tmk_stop stop);

#endif
