/* SPDX-License-Identifier: MIT */
/* passes/peak.h - the blocks alive at one moment: the high-water mark, or a time or step asked
 * for.
 *
 * It takes one sweep and memory of the size of the live set: a block that was alive at the peak
 * so far and is freed later goes to a list; a new peak empties the list. At the end the set is
 * "live now and born by then" plus that list. A tag that came after the moment but before the
 * block's free counts. */
#ifndef TMK_PASSES_PEAK_H
#define TMK_PASSES_PEAK_H

#include "model/run.h"
#include "passes/group.h"
#include "trace/replay.h"

enum tmk_moment_kind {
    TMK_MOMENT_PEAK, /* the first time the most bytes were allocated */
    TMK_MOMENT_TIME, /* after the last event not later than `time_ns` (trace time) */
    TMK_MOMENT_STEP, /* the peak within step `step` */
};

struct tmk_moment {
    enum tmk_moment_kind kind;
    uint64_t time_ns;
    int64_t step;
    bool any_device; /* PEAK and STEP: the device with the largest peak. TIME: all of them */
    uint16_t device; /* else this one */
};

struct tmk_peak; /* the pass, then its result */

/* Returns 0 or TMK_ENOMEM. Give tmk_peak_visitor() to a sweep, then call finish with its replay,
 * then ask. */
int tmk_peak_open(const struct tmk_process *p, const struct tmk_moment *moment,
                  struct tmk_peak **ret_peak);
struct tmk_peak *tmk_peak_close(struct tmk_peak *k);
struct tmk_visitor tmk_peak_visitor(struct tmk_peak *k);
int tmk_peak_finish(struct tmk_peak *k, const struct tmk_replay *rp, struct tmk_error *err);

/* Returns false when the moment never came (no block ever, no such step). */
bool tmk_peak_found(const struct tmk_peak *k);
uint64_t tmk_peak_time_ns(const struct tmk_peak *k); /* trace time */
int64_t tmk_peak_step(const struct tmk_peak *k);     /* TMK_NO_STEP: before the first */
/* With TIME on any device it is the device with the most bytes then; bytes and blocks are of all
 * devices. */
uint16_t tmk_peak_device(const struct tmk_peak *k);
uint64_t tmk_peak_bytes(const struct tmk_peak *k); /* allocated on the device at the moment */
/* The bytes that the framework's allocator had reserved then, on the same devices as the allocated
 * bytes; false when not known. */
bool tmk_peak_reserved(const struct tmk_peak *k, uint64_t *ret_bytes);
/* The blocks of the device alive then; borrowed until close. They add up to the bytes, except where
 * a damaged part of the trace hid their end or the recorder could not follow them. */
uint64_t tmk_peak_n_blocks(const struct tmk_peak *k);
const struct tmk_block *tmk_peak_block(const struct tmk_peak *k, uint64_t i);
/* The names that these blocks' numbers stand for; borrowed until close. */
const struct tmk_labels *tmk_peak_labels(const struct tmk_peak *k);
/* The stage and the module in which the last of them was allocated, which is where the peak was
 * reached; NULL: none, or not known. */
void tmk_peak_place(const struct tmk_peak *k, const char **ret_stage, const char **ret_module);
/* Bytes by key, largest first; borrowed until the next call of group or close. */
int tmk_peak_group(struct tmk_peak *k, enum tmk_by by, const struct tmk_peak_row **ret_rows,
                   uint64_t *ret_n, struct tmk_error *err);

#endif
