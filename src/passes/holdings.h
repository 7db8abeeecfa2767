/* SPDX-License-Identifier: MIT */
/* passes/holdings.h - what a process has of a device over time, by who asked the driver for it:
 * torch, nccl, cublas, jax, cupy ...
 *
 * The parts are those of a timeline (timeline.h), here of segments instead of blocks: max_bytes
 * is the most that the process had of the device in the part, and the owners' bytes are as of
 * that moment. It serves programs that report no blocks, and the part of a device that torch
 * does not know of. */
#ifndef TMK_PASSES_HOLDINGS_H
#define TMK_PASSES_HOLDINGS_H

#include "model/run.h"
#include "passes/timeline.h"
#include "trace/replay.h"

struct tmk_holdings;

/* `times` has n_parts + 1 entries that never fall: where each part starts and where the last
 * ends. Returns 0 or TMK_ENOMEM. */
int tmk_holdings_open(const struct tmk_process *p, uint16_t device, const uint64_t *times,
                      uint32_t n_parts, struct tmk_holdings **ret_holdings);
struct tmk_holdings *tmk_holdings_close(struct tmk_holdings *h);
struct tmk_visitor tmk_holdings_visitor(struct tmk_holdings *h);
/* Call it after the sweep. Returns 0 or TMK_ENOMEM. */
int tmk_holdings_finish(struct tmk_holdings *h, struct tmk_error *err);

/* The parts know nothing of blocks: min, last and reserved are not set. */
const struct tmk_timeline_part *tmk_holdings_parts(const struct tmk_holdings *h);
/* Owners that had memory; borrowed until close. In each part they add up to max_bytes. */
uint32_t tmk_holdings_n(const struct tmk_holdings *h);
const char *tmk_holdings_owner(const struct tmk_holdings *h, uint32_t k); /* NULL: not known */
const uint64_t *tmk_holdings_bytes(const struct tmk_holdings *h, uint32_t k);

#endif
