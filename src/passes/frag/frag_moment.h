/* SPDX-License-Identifier: MIT */
/* passes/frag/frag_moment.h - blocks and segments of a device as they were at one moment. Part of
 * fragmentation.h.
 *
 * It works as peak.c does: what was there at the best moment so far and goes later is kept in a
 * list, which a better moment empties. So nothing is copied while memory grows. */
#ifndef TMK_PASSES_FRAG_FRAG_MOMENT_H
#define TMK_PASSES_FRAG_FRAG_MOMENT_H

#include "trace/replay.h"
#include "trace/state.h"

enum tmk_frag_kind {
    TMK_FRAG_WORST, /* the last OOM; without one, the first time that most was reserved; where that
                       is not known, that most was allocated */
    TMK_FRAG_TIME,  /* after the last event not later than `time_ns` (trace time) */
    TMK_FRAG_STEP,  /* the first time that most was allocated within step `step` */
};

struct tmk_frag_moment {
    enum tmk_frag_kind kind;
    uint64_t time_ns;
    int64_t step;
};

/* The stream of a block that has gone: it tells which stream the segment serves that it lay in. */
struct tmk_frag_trace {
    uint64_t address;
    uint16_t stream;
};

struct tmk_frag_candidate {
    uint16_t device;
    bool found, is_oom;
    uint64_t request_bytes;
    uint64_t measure; /* what the moment has the most of */
    uint64_t ns;
    int64_t step;
    uint64_t n_allocs, n_begun; /* those with a larger serial came later */
    uint64_t n_block_events;
    uint64_t allocated_bytes;
    bool has_reserved;
    uint64_t reserved_bytes;
    uint64_t total_bytes, left_bytes; /* of the device; may be TMK_BYTES_UNKNOWN */

    struct tmk_block *blocks; /* those gone since; after collect: all of the moment */
    uint64_t n_blocks, block_room;
    struct tmk_driver_segment *segments; /* likewise */
    uint64_t n_segments, segment_room;
    struct tmk_frag_trace *traces; /* after collect, by address; where there are several streams */
    uint64_t n_traces, trace_room;

    /* The state as of now. */
    uint64_t segment_bytes;                              /* of memory on the device */
    uint64_t sample_total, sample_used, sample_segments; /* when the driver was asked last */
    bool has_stream, has_streams;                        /* one was seen; several were */
    uint16_t stream;
};

struct tmk_frag_moments {
    struct tmk_frag_moment moment;
    struct tmk_frag_candidate devices[TMK_MAX_DEVICES];
    uint32_t n_devices, last;
    bool is_given_up; /* TIME: the detail of that time is gone */
    bool failed;
};

/* Call these from a visitor, which hears: */
#define TMK_FRAG_MOMENTS_KINDS                                                                     \
    (TMK_HEARS(ALLOC) | TMK_HEARS(FREE) | TMK_HEARS(RESERVED) | TMK_HEARS(STEP) | TMK_HEARS(OOM) | \
     TMK_HEARS(SEGMENT) | TMK_HEARS(SEGMENT_END) | TMK_HEARS(SAMPLE))
void tmk_frag_moments_event(struct tmk_frag_moments *m, const struct tmk_replay *rp,
                            const struct tmk_event *ev, const struct tmk_block *b);
void tmk_frag_moments_restored(struct tmk_frag_moments *m, const struct tmk_replay *rp);
/* Call it after the sweep: it makes the lists complete. Returns 0 or TMK_ENOMEM. */
int tmk_frag_moments_collect(struct tmk_frag_moments *m, const struct tmk_state *s);
void tmk_frag_moments_fini(struct tmk_frag_moments *m);

#endif
