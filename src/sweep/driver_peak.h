/* SPDX-License-Identifier: MIT */
/* sweep/driver_peak.h - the most memory that a process reserved from a GPU's driver, by owner. It
 * measures programs that use no framework's allocator (JAX, CuPy, CUDA C). It is a pass for one
 * sweep. */
#ifndef TMK_SWEEP_DRIVER_PEAK_H
#define TMK_SWEEP_DRIVER_PEAK_H

#include "passes/segment_sums.h"
#include "trace/replay.h"

struct tmk_driver_peak {
    struct tmk_segment_sums *now;
    bool found;
    int64_t step;
    struct tmk_device_sums peak; /* of the GPU with the largest peak; owners by the sums' numbers */
};

/* Init: 0 or TMK_ENOMEM; fini takes a zeroed one. */
int tmk_driver_peak_init(struct tmk_driver_peak *h, const struct tmk_process *p);
void tmk_driver_peak_fini(struct tmk_driver_peak *h);
struct tmk_visitor tmk_driver_peak_visitor(struct tmk_driver_peak *h);

/* The name of an owner, by number; "unknown" if the stack does not say. Borrowed until fini. */
const char *tmk_driver_peak_owner(const struct tmk_driver_peak *h, uint32_t owner);

#endif
