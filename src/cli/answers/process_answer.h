/* SPDX-License-Identifier: MIT */
/* cli/answers/process_answer.h - all that a report says of one process, found out in one sweep. */
#ifndef TMK_CLI_ANSWERS_PROCESS_ANSWER_H
#define TMK_CLI_ANSWERS_PROCESS_ANSWER_H

#include "model/run.h"
#include "passes/accounting.h"
#include "passes/forecast.h"
#include "passes/frag/fragmentation.h"
#include "passes/marks.h"
#include "passes/oom/ooms.h"
#include "passes/peak.h"
#include "passes/quality.h"
#include "passes/sites.h"
#include "passes/steps.h"
#include "passes/timeline.h"

struct tmk_process_answer {
    struct tmk_process *p;
    uint64_t n_events, n_allocs, n_frees;
    uint64_t n_live, live_bytes; /* at the end, all devices */

    /* The exact peak. `detail_lost`: the trace no longer has (or never had) the blocks of that
     * moment, and `peak` is about the largest moment that it has. */
    bool has_peak;
    bool detail_lost;
    uint16_t device;
    uint64_t peak_bytes, peak_ns; /* trace time */
    int64_t peak_step;
    bool has_reserved;       /* known at the peak */
    uint64_t reserved_bytes; /* held of the device then, blocks and cache */

    struct tmk_peak *peak;
    struct tmk_timeline *timeline;
    struct tmk_sites *sites;
    struct tmk_ooms *ooms;
    struct tmk_marks *marks;
    struct tmk_accounting *accounting;
    struct tmk_leakage *leakage;
    struct tmk_fragmentation *frag; /* at the worst moment */
    struct tmk_steps *steps;        /* of `device` */
    struct tmk_forecast_samples *samples;
    struct tmk_forecast forecast; /* of `device` */
    struct tmk_quality quality;
};

/* Sweep `p`. 0, or an exit status after a message; fini in both cases. `n_parts` of the timeline.
 */
int tmk_process_answer_init(struct tmk_process_answer *f, struct tmk_process *p, uint32_t n_parts);
void tmk_process_answer_fini(struct tmk_process_answer *f);

/* The timeline's parts of the peak's device; NULL when it has none. */
const struct tmk_timeline_part *tmk_process_answer_parts(const struct tmk_process_answer *f);

/* Most bytes in a part: from the sweep or, for a part whose detail was given up, from the history
 * (the largest peak of the steps that it touches). */
uint64_t tmk_process_answer_part_max(const struct tmk_process_answer *f, uint32_t part);

/* True when the sweep saw the whole of this part. */
bool tmk_process_answer_part_is_known(const struct tmk_process_answer *f, uint32_t part);

/* The model's parameters on the peak's device: their own bytes, which the allocator may have
 * rounded up to larger blocks. */
struct tmk_parameters_sum {
    uint32_t n;
    uint64_t size_bytes, trained_bytes;
};
struct tmk_parameters_sum tmk_process_answer_parameters(const struct tmk_process_answer *f);

/* What is missing or doubtful, a sentence each. Returns how many. */
unsigned tmk_process_answer_doubts(const struct tmk_process_answer *f,
                                   void (*sentence)(void *arg, const char *text), void *arg);

#endif
