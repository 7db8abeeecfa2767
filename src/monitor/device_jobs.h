/* SPDX-License-Identifier: MIT */
/* monitor/device_jobs.h - what the watched processes on a device tell about it that its driver does
 * not: whether they ran out of memory, and how fragmented their memory is.
 *
 * cli/live/watched_jobs.h fills it from the traces of the processes. Fragmentation belongs to a
 * process's caching allocator: of a device it is the sum over its watched processes. */
#ifndef TMK_MONITOR_DEVICE_JOBS_H
#define TMK_MONITOR_DEVICE_JOBS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "kit/tree.h"

enum { TMK_JOB_REASON_BYTES = 160 };

/* How fragmented the memory of one process on one device was at the last event of its trace: found
 * from its blocks in its segments. */
struct tmk_job_fragmentation {
    uint32_t pid;
    int64_t rank;    /* -1: none */
    char device[24]; /* as the process numbers it: "cuda:0" */
    uint64_t reserved_bytes, allocated_bytes;
    uint64_t free_bytes;        /* cached: reserved and not allocated */
    uint64_t largest_bytes;     /* the largest free block */
    uint64_t allocatable_bytes; /* the largest request that the cache serves */
    uint64_t releasable_bytes;  /* what empty_cache() would give back */
    uint64_t n_segments, n_blocks, n_free;
};

struct tmk_device_jobs {
    uint64_t n_ooms; /* since the monitor began; the next four are of the last, if there was one */
    time_t oom_time;
    uint64_t oom_ns; /* since the monitor's first sample */
    uint32_t oom_pid;
    uint64_t oom_bytes; /* requested */
    struct tmk_job_fragmentation *jobs;
    uint64_t n_jobs, room;
    char reason[TMK_JOB_REASON_BYTES]; /* why the fragmentation of the device, or of one of the
                                          processes on it, is not known; "": it is known */
};

/* The sum over the processes; sums of nothing are 0, the largest block is the largest of all. */
struct tmk_job_fragmentation tmk_device_jobs_sum(const struct tmk_device_jobs *d);
/* Bytes that lie free between blocks, so that they cannot be given back. */
uint64_t tmk_job_stuck_bytes(const struct tmk_job_fragmentation *f);

/* Whether the last OOM is so recent that it is what to say of the device. */
bool tmk_device_jobs_had_oom(const struct tmk_device_jobs *d, uint64_t elapsed_ns);

/* Write "fragmentation" and "fragmentation_reason" into the open object. */
void tmk_device_jobs_write(struct tmk_tree *t, const struct tmk_device_jobs *d);
/* Write "ooms" and "last_oom" into the open object; NULL: they are not known. */
void tmk_device_ooms_write(struct tmk_tree *t, const struct tmk_device_jobs *d);

#endif
