/* SPDX-License-Identifier: MIT */
/* trace/merge.h - brings a trace and its ring together.
 *
 * A process that was killed leaves its newest events in the ring. settle() moves them to the trace
 * and removes the ring, as the process itself would have done. `run` calls it when its child dies,
 * and any reader calls it first. The bytes it writes count for the run's share of the disk
 * (disk_share.h). Where settling is impossible (the process lives, the folder is read-only, the
 * share is used up) open() packs a copy of the ring into memory instead, so that the reader sees
 * the trace as of now and nothing is disturbed. */
#ifndef TMK_TRACE_MERGE_H
#define TMK_TRACE_MERGE_H

#include "base/error.h"
#include "trace/reader.h"

/* Merge an orphaned ring into the trace at `path`. Returns 1 when it is done, 0 when there was
 * nothing to do or the process lives, <0 on failure, with trace and ring as they were (TMK_EFULL:
 * the run has no room on the disk). */
int tmk_merge_settle(const char *path, struct tmk_error *err);

/* Open a trace with all its events: settled if possible, else with the ring attached. *ret_live
 * (may be NULL) says whether its process is still writing. */
int tmk_merge_open(const char *path, struct tmk_reader **ret_reader, bool *ret_live,
                   struct tmk_error *err);

/* The same for a trace of a living process that has its ring at `ring_path` as the caller sees it,
 * whatever the trace says: a trace made in a container has other paths. Settles nothing. */
int tmk_merge_open_beside(const char *path, const char *ring_path, struct tmk_reader **ret_reader,
                          bool *ret_live, struct tmk_error *err);

#endif
