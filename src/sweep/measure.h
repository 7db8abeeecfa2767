/* SPDX-License-Identifier: MIT */
/* sweep/measure.h - what the run of a configuration says of its memory.
 *
 * Each process of the run is replayed once. The peak is that of the device that decides whether the
 * configuration fits: the accelerator with the largest peak of all processes, or the host where no
 * accelerator was used. Of a program that no framework's allocator serves (JAX, CUDA C) it is what
 * it held of the driver, and its components are the libraries that asked. Shares of it add up to it
 * exactly; where the trace cannot say what all of it was (--max-size gave that part up), there are
 * none. A process whose trace ends before it does, or has holes, has no peak that is known, and so
 * has the configuration: what was seen of it may be less. */
#ifndef TMK_SWEEP_MEASURE_H
#define TMK_SWEEP_MEASURE_H

#include "sweep/results.h"

struct tmk_measured {
    bool found;      /* a process reported a block, or held some of a card */
    bool ran_out;    /* a process was refused memory, and that was not the allocator's first try */
    bool went_on;    /* then: another step, or very many blocks, came behind the last time, in each
                      * such process */
    const char *oom; /* then: a sentence about the last time */
    const char *incomplete; /* why the peak is not known though some was seen; NULL: it is whole */
};

/* Fill in device, capacity, peaks, steps, shares, stages and ranks of *c, texts from the arena,
 * from the run at `path`. 0 and *ret; without traces nothing is found. TMK_ENOMEM or a read's
 * failure otherwise: *c is then as far as it came. */
int tmk_measure_run(const char *path, struct tmk_arena *a, struct tmk_cell *c,
                    struct tmk_measured *ret, struct tmk_error *err);

#endif
