/* SPDX-License-Identifier: MIT */
/* tui/jobs.h - the watched processes and their figures, read from their traces as of now.
 *
 * Reading costs, and more the longer a trace is. So each thing that is read (the list of watched
 * processes, each trace) says by its own cost when it is due again: half a percent of a core is
 * spent on all together, and only traces that take longer than a tenth of a second, which are read
 * once a minute all the same, may cost more. It happens on a thread of its own. */
#ifndef TMK_TUI_JOBS_H
#define TMK_TUI_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "passes/forecast.h"

enum { TMK_JOB_TEXT_BYTES = 512 };

struct tmk_job {
    uint32_t pid;
    bool has_memory; /* something was allocated: the figures below are known */
    uint16_t device; /* where most was, as torch numbers them; as `tidemark ps` */
    int64_t rank;    /* -1: none */
    int64_t step;    /* TMK_NO_STEP: before the first */
    uint64_t allocated_bytes;
    uint64_t reserved_bytes; /* UINT64_MAX: not known */
    uint64_t peak_bytes;
    struct tmk_forecast forecast;     /* of the device */
    char run[TMK_JOB_TEXT_BYTES];     /* the folder of its trace */
    char command[TMK_JOB_TEXT_BYTES]; /* secrets left out; "": the trace cannot be read */
};

struct tmk_jobs;

/* NULL without memory. */
struct tmk_jobs *tmk_jobs_open(uint64_t interval_ns);
/* Takes NULL. While it reads, memory is left to the process's end. */
struct tmk_jobs *tmk_jobs_close(struct tmk_jobs *jobs);

/* Read all now, and wait for it. */
void tmk_jobs_read(struct tmk_jobs *jobs);
/* Begin what is due; true when what was begun has come back and the figures are new. */
bool tmk_jobs_look(struct tmk_jobs *jobs);
/* Whether something is being read. */
bool tmk_jobs_is_busy(const struct tmk_jobs *jobs);
/* The figures as they were last, by PID; borrowed until look or read. */
const struct tmk_job *tmk_jobs_get(const struct tmk_jobs *jobs, uint32_t *ret_n);

#endif
