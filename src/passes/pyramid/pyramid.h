/* SPDX-License-Identifier: MIT */
/* passes/pyramid/pyramid.h - a whole run as a picture that can be zoomed: bytes over time with what
 * they were made of, and the blocks worth drawing one by one. One sweep.
 *
 * Time is cut into equal bins, those of a timeline (timeline.h). Each bin has layers: what was
 * alive at its moment with the most bytes, by category, module, component and stage; layers of a
 * dimension add up to the bin's most. Coarser levels need no sweep: of two bins, the one with more
 * bytes stands for both, with its layers. Blocks are chosen by picked_blocks.h.
 *
 *     tmk_pyramid_open(p, 8192, &y); ... sweep with tmk_pyramid_visitor(y) ...
 *     tmk_pyramid_finish(y, &rp, &err);
 *     tmk_pyramid_bytes(y, device, TMK_BY_CATEGORY, k)[bin] */
#ifndef TMK_PASSES_PYRAMID_PYRAMID_H
#define TMK_PASSES_PYRAMID_PYRAMID_H

#include "model/run.h"
#include "passes/group.h"
#include "passes/pyramid/picked_blocks.h"
#include "passes/timeline.h"
#include "trace/replay.h"

/* A dimension has at most so many keys of its own. Keys that are met later share one more. */
enum { TMK_PYRAMID_MAX_KEYS = 512 };

struct tmk_pyramid;

/* Returns 0 or TMK_ENOMEM. */
int tmk_pyramid_open(const struct tmk_process *p, uint32_t n_bins, struct tmk_pyramid **ret);
/* The same for a window of time, in which single blocks are picked first. */
int tmk_pyramid_open_window(const struct tmk_process *p, uint64_t start_ns, uint64_t end_ns,
                            uint32_t n_bins, struct tmk_pyramid **ret);
struct tmk_pyramid *tmk_pyramid_close(struct tmk_pyramid *y);
struct tmk_visitor tmk_pyramid_visitor(struct tmk_pyramid *y);
/* Call it after the sweep. Returns 0 or TMK_ENOMEM. */
int tmk_pyramid_finish(struct tmk_pyramid *y, const struct tmk_replay *rp, struct tmk_error *err);

/* The time that it covers. */
uint64_t tmk_pyramid_start_ns(const struct tmk_pyramid *y);
uint64_t tmk_pyramid_end_ns(const struct tmk_pyramid *y);

/* The bins, as parts, and the devices. Everything is borrowed until close. */
const struct tmk_timeline *tmk_pyramid_timeline(const struct tmk_pyramid *y);

/* The keys of a dimension: TMK_BY_CATEGORY, MODULE, COMPONENT or STAGE. A key is NULL when it is
 * not known; number TMK_PYRAMID_MAX_KEYS stands for all further ones. */
uint32_t tmk_pyramid_n_keys(const struct tmk_pyramid *y, enum tmk_by by);
const char *tmk_pyramid_key(const struct tmk_pyramid *y, enum tmk_by by, uint32_t k);
/* The bytes of a key on the timeline's i-th device, by bin; NULL: it had none there. */
const uint64_t *tmk_pyramid_bytes(const struct tmk_pyramid *y, uint32_t device_i, enum tmk_by by,
                                  uint32_t k);

const struct tmk_picked_blocks *tmk_pyramid_blocks(const struct tmk_pyramid *y);

#endif
