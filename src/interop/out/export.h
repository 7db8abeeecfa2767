/* SPDX-License-Identifier: MIT */
/* interop/out/export.h - writers of a run in the formats of other tools. docs/export.md says what
 * each file contains.
 *
 * Each writer takes a request and writes to a file that the caller has opened, from its
 * beginning. The memory used is bounded by what is alive at one moment and by the trace's
 * definitions, not by the number of events; tables go through SQL, which keeps one table's
 * columns.
 *
 * Returns 0; TMK_ENOENT when the run has nothing of what was requested; else an error with the
 * reason in *err. */
#ifndef TMK_INTEROP_OUT_EXPORT_H
#define TMK_INTEROP_OUT_EXPORT_H

#include <stdio.h>

#include "model/run.h"
#include "passes/peak.h"
#include "trace/replay.h"

enum tmk_export_what {
    TMK_EXPORT_AT,        /* alive at a moment */
    TMK_EXPORT_ALLOCATED, /* all that was ever allocated */
    TMK_EXPORT_LEFT,      /* alive at the end */
    TMK_N_EXPORT_WHATS,
};

struct tmk_export {
    struct tmk_run *run;
    struct tmk_process *p; /* of formats that show one process; NULL: all processes of the run */
    bool any_device;       /* else `device` alone */
    uint16_t device;
    uint64_t from_ns, until_ns; /* run time; 0 and UINT64_MAX: everything */
    enum tmk_export_what what;  /* for stacks */
    struct tmk_moment moment;   /* for TMK_EXPORT_AT */
    struct tmk_visitor progress;
};

/* Remarks about a file, for the user. */
struct tmk_export_notes {
    uint64_t n_events;      /* number of entries, samples, stacks or rows written */
    bool made_up_segments;  /* torch-snapshot: the trace has no segments for some blocks */
    bool is_host;           /* torch-snapshot: the CPU's blocks are shown as device 0's */
    uint64_t resolution_ns; /* perfetto: counters have the most and the last of each such part; 0:
                               every change */
    uint64_t at_bytes;      /* stacks: what was alive at the moment */
};

static inline uint64_t tmk_export_trace_time(const struct tmk_process *p, uint64_t run_ns)
{
    return run_ns == UINT64_MAX ? run_ns : run_ns > p->offset_ns ? run_ns - p->offset_ns : 0;
}

/* The file must be a plain one, which can be read and written at any offset. */
int tmk_export_torch_snapshot(const struct tmk_export *x, int fd, struct tmk_export_notes *ret,
                              struct tmk_error *err);
int tmk_export_perfetto(const struct tmk_export *x, int fd, struct tmk_export_notes *ret,
                        struct tmk_error *err);
int tmk_export_folded(const struct tmk_export *x, FILE *out, struct tmk_export_notes *ret,
                      struct tmk_error *err);
int tmk_export_speedscope(const struct tmk_export *x, FILE *out, struct tmk_export_notes *ret,
                          struct tmk_error *err);

#endif
