/* SPDX-License-Identifier: MIT */
/* cli/live/watched_jobs.h - the watched processes on the devices that a monitor samples: did one
 * run out of memory, and how fragmented is what they have reserved?
 *
 *     jobs = tmk_watched_jobs_open(m);
 *     tmk_watched_jobs_look(jobs);              after each sample: new OOMs
 *     tmk_watched_jobs_read_fragmentation(jobs); for a report
 *     ... tmk_watched_jobs_device(jobs, i) ...
 *     jobs = tmk_watched_jobs_close(jobs);
 *
 * Nothing is asked of the processes: their traces are read. Reading costs time, so each trace, and
 * the list of processes, is due again after five hundred times what it cost, a second at least. A
 * process that has ended is read once more, since an OOM may be what ended it.
 *
 * torch counts a process's devices by its CUDA_VISIBLE_DEVICES, the driver counts all. What the
 * process was started with (/proc/PID/environ) leads from one to the other; where the driver lists
 * the process on another device and on that one only, that one counts. */
#ifndef TMK_CLI_LIVE_WATCHED_JOBS_H
#define TMK_CLI_LIVE_WATCHED_JOBS_H

#include "cli/live/monitoring.h"
#include "monitor/device_jobs.h"

struct tmk_watched_jobs;

/* `m` is borrowed until close. */
struct tmk_watched_jobs *tmk_watched_jobs_open(const struct tmk_monitoring *m);
struct tmk_watched_jobs *tmk_watched_jobs_close(struct tmk_watched_jobs *jobs);

/* Look for new OOMs where that is due; with `now`, whether due or not. */
void tmk_watched_jobs_look(struct tmk_watched_jobs *jobs, bool now);
/* Read the fragmentation as it is now. No reading begins after two seconds of it; processes left
 * out are named in their devices' reasons, and come first the next time. */
void tmk_watched_jobs_read_fragmentation(struct tmk_watched_jobs *jobs);

/* What is known, one for each sampled device; borrowed until close. */
const struct tmk_device_jobs *tmk_watched_jobs_devices(const struct tmk_watched_jobs *jobs);

#endif
