/* SPDX-License-Identifier: MIT */
/* passes/holdings.h - what a process has of a device over time, by who asked the driver for it:
 * torch, nccl, cublas, jax, cupy ...
 *
 * The parts are as of a timeline (timeline.h), here of segments instead of blocks: max_bytes is the
 * most that the process held of the device in the part, and the owners' bytes are of that moment.
 * For programs whose blocks nobody tells of, and for what of a card torch does not know. */
#ifndef TMK_PASSES_HOLDINGS_H
#define TMK_PASSES_HOLDINGS_H

#include "model/run.h"
#include "passes/timeline.h"
#include "trace/replay.h"

struct tmk_holdings;

/* `times` are n_parts + 1, never falling: where each part starts and the last ends. 0 or
 * TMK_ENOMEM. */
int tmk_holdings_open(const struct tmk_process *p, uint16_t device, const uint64_t *times,
                      uint32_t n_parts, struct tmk_holdings **ret_holdings);
struct tmk_holdings *tmk_holdings_close(struct tmk_holdings *h);
struct tmk_visitor tmk_holdings_visitor(struct tmk_holdings *h);
/* After the sweep: 0 or TMK_ENOMEM. */
int tmk_holdings_finish(struct tmk_holdings *h, struct tmk_error *err);

/* Of blocks there is nothing in them: min, last and reserved are not set. */
const struct tmk_timeline_part *tmk_holdings_parts(const struct tmk_holdings *h);
/* Owners that held something; borrowed until close. They add up to max_bytes of each part. */
uint32_t tmk_holdings_n(const struct tmk_holdings *h);
const char *tmk_holdings_owner(const struct tmk_holdings *h, uint32_t k); /* NULL: not known */
const uint64_t *tmk_holdings_bytes(const struct tmk_holdings *h, uint32_t k);

#endif
