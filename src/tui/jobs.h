/* SPDX-License-Identifier: MIT */
/* tui/jobs.h - the watched processes and their figures, read from their traces as they are now.
 *
 * Reading costs time, and more for longer traces. So the cost of each thing that is read (the list
 * of watched processes, each trace) decides when it is due again: all together take half a percent
 * of a core. Only traces that take longer than a tenth of a second may cost more, because they are
 * still read once a minute. A thread of its own does the reading. */
#ifndef TMK_TUI_JOBS_H
#define TMK_TUI_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "passes/forecast.h"

enum { TMK_JOB_TEXT_BYTES = 512 };

struct tmk_job {
    uint32_t pid;
    bool has_memory; /* something was allocated: the figures below are known */
    uint16_t device; /* the device with the highest peak, by torch's number; as in `tidemark ps` */
    int64_t rank;    /* -1: none */
    int64_t step;    /* TMK_NO_STEP: before the first */
    uint64_t allocated_bytes;
    uint64_t reserved_bytes; /* UINT64_MAX: not known */
    uint64_t peak_bytes;
    uint64_t step_ns;                 /* mean time of a step; 0: not known */
    bool has_growth;                  /* enough steps: the next is known */
    double bytes_per_step;            /* change of the memory kept after a step; 0: steady */
    struct tmk_forecast forecast;     /* for that device */
    char run[TMK_JOB_TEXT_BYTES];     /* the folder of its trace */
    char command[TMK_JOB_TEXT_BYTES]; /* without secrets; "": the trace cannot be read */
};

struct tmk_jobs;

/* Open; NULL: no memory. */
struct tmk_jobs *tmk_jobs_open(uint64_t interval_ns);
void tmk_jobs_set_interval(struct tmk_jobs *jobs, uint64_t interval_ns);
/* Close; takes NULL. If it is reading, its memory stays until the process ends. */
struct tmk_jobs *tmk_jobs_close(struct tmk_jobs *jobs);

/* Read everything now, and wait for it. */
void tmk_jobs_read(struct tmk_jobs *jobs);
/* Begin the reading that is due; true: earlier reading is done and the figures are new. */
bool tmk_jobs_look(struct tmk_jobs *jobs);
/* Whether something is being read. */
bool tmk_jobs_is_busy(const struct tmk_jobs *jobs);
/* The last figures, by PID; borrowed until look or read. */
const struct tmk_job *tmk_jobs_get(const struct tmk_jobs *jobs, uint32_t *ret_n);

#endif
