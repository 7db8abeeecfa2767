/* SPDX-License-Identifier: MIT */
/* passes/quality.h - how far a process's figures can be trusted: what was dropped, given up or
 * damaged, and why recording ended. When all is zero and false, everything is there. */
#ifndef TMK_PASSES_QUALITY_H
#define TMK_PASSES_QUALITY_H

#include "model/run.h"
#include "trace/layout.h"

struct tmk_quality {
    bool live;          /* the process is still writing */
    bool merged;        /* ended from outside; its last events were taken from the ring */
    bool unfinished;    /* neither closed nor live: its last events may be missing */
    enum tmk_stop stop; /* recording ended early, and why */
    int stop_os_error;
    uint64_t n_dropped;         /* events, because the ring was full */
    uint64_t n_given_up;        /* events, to stay under --max-size */
    uint64_t n_untracked;       /* blocks the recorder could not follow */
    uint64_t n_without_details; /* blocks alive at the end, of unknown age and origin: the events
                                   that tell are no longer in the trace */
    uint64_t n_unnamed;         /* times that a table had no room for a name, stack or stream */
    uint64_t n_replaced;        /* blocks with a free that was never seen */
    uint64_t n_unknown_free;    /* frees of blocks that were never seen */
    uint64_t n_lost_segments;   /* driver segments for which a table had no room */
    uint64_t detail_from_ns;    /* trace time; later than 0 when detail was given up */
    uint32_t n_bad_chunks;      /* unreadable parts of the trace */
    uint64_t n_stray_bytes;     /* bytes of the file that belong to no part */
    uint64_t first_bad_offset;
    bool header_damaged;
};

/* The quality of a trace that a sweep left in `rp`. */
struct tmk_quality tmk_quality_of(const struct tmk_process *p, const struct tmk_replay *rp);

/* Fill in what needs no sweep: everything except blocks of unknown origin, frees that do not match,
 * segments without room, and parts with a wrong checksum. */
struct tmk_quality tmk_quality_of_status(const struct tmk_process *p);

/* Why the last events of an `unfinished` trace are missing; the text follows "it was not
 * closed". */
const char *tmk_quality_ring_text(const struct tmk_process *p);

/* `n_without_details` alone, by a sweep of its own if that may be more than 0. */
int tmk_quality_without_details(struct tmk_process *p, uint64_t *ret_n, struct tmk_error *err);

/* Nothing is missing and nothing is doubtful (live and merged are fine). */
bool tmk_quality_is_good(const struct tmk_quality *q);

#endif
