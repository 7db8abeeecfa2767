/* SPDX-License-Identifier: MIT */
/* cli/answers/process_answer.h - all that a report says about one process, found in one sweep. */
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
    uint64_t reserved_bytes; /* reserved on the device then, blocks and cache */

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

/* A time of the trace as time of the run. */
uint64_t tmk_process_answer_run_ns(const struct tmk_process_answer *f, uint64_t trace_ns);

/* Returns the timeline's parts for the device of the peak; NULL when there are none. */
const struct tmk_timeline_part *tmk_process_answer_parts(const struct tmk_process_answer *f);

/* Returns the most bytes in a part. They come from the sweep or, where detail was given up, from
 * the history: the largest peak of the steps that the part touches. */
uint64_t tmk_process_answer_part_max(const struct tmk_process_answer *f, uint32_t part);

/* Returns whether the sweep saw the whole part. */
bool tmk_process_answer_part_is_known(const struct tmk_process_answer *f, uint32_t part);

/* The model's parameters on the device of the peak. Bytes are the tensors' own; the allocator may
 * have rounded them up to larger blocks. */
struct tmk_parameters_sum {
    uint32_t n;
    uint64_t size_bytes, trained_bytes;
};
struct tmk_parameters_sum tmk_process_answer_parameters(const struct tmk_process_answer *f);

/* Tell `sentence` each thing that is missing or doubtful. Returns how many there are. */
unsigned tmk_process_answer_doubts(const struct tmk_process_answer *f,
                                   void (*sentence)(void *arg, const char *text), void *arg);

#endif
