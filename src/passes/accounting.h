/* SPDX-License-Identifier: MIT */
/* passes/accounting.h - what a device's memory is used for: the bytes that the driver reports as
 * used, split by owner.
 *
 *     used = segments, by owner + context and code + other processes + unexplained
 *
 * Each sampled device is accounted for at two moments: when the process had most of it, and
 * last. "Context and code" is what the driver counts to the process beyond its segments: the
 * context, loaded kernels, and rounding by the driver. "Unexplained" is what the driver counts
 * to no process that it names. Torch's segments contain its allocated blocks and what it keeps
 * cached.
 *
 * Without samples (no NVML) only the segments are reported, as of the end. */
#ifndef TMK_PASSES_ACCOUNTING_H
#define TMK_PASSES_ACCOUNTING_H

#include "model/run.h"
#include "trace/replay.h"

struct tmk_account_part {
    const char *owner; /* "unknown" where the stack does not tell */
    uint64_t bytes;
    uint64_t n_segments;
};

struct tmk_device_account {
    uint16_t device;
    bool is_peak; /* else it is the last moment */
    uint64_t time_ns;
    int64_t step;
    const struct tmk_account_part *parts; /* largest first */
    uint64_t n_parts;
    uint64_t segment_bytes; /* all of them */

    /* Each is TMK_BYTES_UNKNOWN where the driver does not tell. */
    uint64_t used_bytes, total_bytes, own_bytes, others_bytes;
    uint64_t context_bytes, unexplained_bytes;

    uint64_t allocated_bytes; /* in blocks */
    bool has_reserved;
    uint64_t reserved_bytes; /* by the framework's allocator */
};

struct tmk_accounting;

int tmk_accounting_open(const struct tmk_process *p, struct tmk_accounting **ret_accounting);
struct tmk_accounting *tmk_accounting_close(struct tmk_accounting *a);
struct tmk_visitor tmk_accounting_visitor(struct tmk_accounting *a);
/* Call it after the sweep. Returns 0 or TMK_ENOMEM. */
int tmk_accounting_finish(struct tmk_accounting *a, const struct tmk_replay *rp,
                          struct tmk_error *err);

/* Accounts come by device, the peak before the last moment. */
uint64_t tmk_accounting_n(const struct tmk_accounting *a);
const struct tmk_device_account *tmk_accounting_get(const struct tmk_accounting *a, uint64_t i);

#endif
