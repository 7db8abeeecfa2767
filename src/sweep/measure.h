/* SPDX-License-Identifier: MIT */
/* sweep/measure.h - measure the memory of a configuration from its run.
 *
 * Each process of the run is replayed once. The peak is the peak of the device that decides whether
 * the configuration fits: the accelerator with the largest peak of all processes, or the host if no
 * accelerator was used. For a program without a framework's allocator (JAX, CUDA C) it is the
 * memory reserved from the driver, and its components are the libraries that asked for it. Shares
 * add up to the peak exactly; if the trace cannot explain all of it (--max-size dropped that part),
 * there are no shares. If a process's trace is incomplete, neither the process nor the
 * configuration has a known peak, because the real one may be higher. */
#ifndef TMK_SWEEP_MEASURE_H
#define TMK_SWEEP_MEASURE_H

#include "sweep/results.h"

struct tmk_measured {
    bool found;      /* a process reported a block, or reserved GPU memory */
    bool ran_out;    /* a process had an OOM that was not just the allocator's first try */
    bool went_on;    /* then: another step, or very many blocks, followed the last OOM in each such
                        process */
    const char *oom; /* then: a sentence about the last OOM */
    const char
        *incomplete; /* why the peak is not known although events were seen; NULL: it is known */
};

/* Fill in device, capacity, peaks, steps, shares, stages and ranks of *c from the run at `path`,
 * with texts from the arena. 0 and *ret; without traces `found` is false. On TMK_ENOMEM or a failed
 * read, *c is filled in partly. */
int tmk_measure_run(const char *path, struct tmk_arena *a, struct tmk_cell *c,
                    struct tmk_measured *ret, struct tmk_error *err);

#endif
