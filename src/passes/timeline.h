/* SPDX-License-Identifier: MIT */
/* passes/timeline.h - allocated bytes over time, in n parts, mostly equal ones: the most, least
 * and last of each.
 *
 * The span is [start, end] of trace time; every part has values, since memory stays allocated
 * while nothing happens. */
#ifndef TMK_PASSES_TIMELINE_H
#define TMK_PASSES_TIMELINE_H

#include "trace/replay.h"

struct tmk_timeline_part {
    uint64_t start_ns; /* trace time */
    uint64_t end_ns;
    uint64_t max_bytes;
    uint64_t max_ns;     /* when it was first reached, or the start of the part */
    uint64_t max_serial; /* blocks with a larger one were born later */
    uint64_t max_seen;   /* allocations and frees that the sweep had shown by then */
    uint64_t min_bytes;
    uint64_t last_bytes;
    bool has_reserved;           /* else the next is not known */
    uint64_t max_reserved_bytes; /* most that was reserved on the device */
    bool has_used;               /* else the next is not known: the device was not sampled yet */
    uint64_t max_used_bytes;     /* most of the device that was in use, by any process */
    int64_t step;                /* in force at the end of the part, TMK_NO_STEP: none */
};

struct tmk_timeline;

int tmk_timeline_open(uint64_t start_ns, uint64_t end_ns, uint32_t n_parts,
                      struct tmk_timeline **ret_timeline);
/* The same with parts of any length: `times` has n_parts + 1 entries that never fall: where each
 * part starts and where the last ends. They are copied. */
int tmk_timeline_open_at(const uint64_t *times, uint32_t n_parts,
                         struct tmk_timeline **ret_timeline);
struct tmk_timeline *tmk_timeline_close(struct tmk_timeline *t);
struct tmk_visitor tmk_timeline_visitor(struct tmk_timeline *t);
/* Call it after the sweep. Returns 0, or TMK_ENOMEM when it ran out of memory. */
int tmk_timeline_finish(struct tmk_timeline *t);

/* The devices met, and the parts of one of them. */
uint32_t tmk_timeline_n_devices(const struct tmk_timeline *t);
uint16_t tmk_timeline_device(const struct tmk_timeline *t, uint32_t i);
const struct tmk_timeline_part *tmk_timeline_parts(const struct tmk_timeline *t, uint32_t device_i);
uint32_t tmk_timeline_n_parts(const struct tmk_timeline *t);
/* During the sweep: the part that the last event shown lies in. */
uint32_t tmk_timeline_at(const struct tmk_timeline *t);
/* The trace time from which the values are known: later than 0 when older detail was given up. */
uint64_t tmk_timeline_known_ns(const struct tmk_timeline *t);

#endif
