/* SPDX-License-Identifier: MIT */
/* passes/layers.h - what was alive at each of many moments, by what the blocks have in common:
 * the layers of a timeline.
 *
 * A block's category is known when it goes, so this is a second sweep. The first one is a
 * timeline (timeline.h): the moment with the most bytes of each of its parts is taken, so that
 * no peak is lost however few the parts. A block counts at all moments that it lived through: it
 * is added where it came and subtracted where it went, and sums are made at the end. So an event
 * costs the same however many moments there are, and memory is keys times moments.
 *
 *     sweep with tmk_timeline_visitor(t), then tmk_labels_init(&labels, p, &rp.state)
 *     tmk_layers_open(&labels, TMK_BY_CATEGORY, t, device, &s)
 *     sweep with tmk_layers_visitor(s), then tmk_layers_finish(s, &rp2, &err)
 *     tmk_layers_bytes(s, k)[i]: bytes of key k in part i */
#ifndef TMK_PASSES_LAYERS_H
#define TMK_PASSES_LAYERS_H

#include "passes/group.h"
#include "passes/timeline.h"
#include "trace/replay.h"

struct tmk_layers;

/* Labels and timeline must outlive the layers; `device` is the number of one of the timeline's
 * devices. Returns 0 or TMK_ENOMEM. */
int tmk_layers_open(const struct tmk_labels *l, enum tmk_by by, const struct tmk_timeline *t,
                    uint32_t device, struct tmk_layers **ret_layers);
struct tmk_layers *tmk_layers_close(struct tmk_layers *s);
struct tmk_visitor tmk_layers_visitor(struct tmk_layers *s);
/* Call it after the sweep. Returns 0 or TMK_ENOMEM. Bytes of blocks that a gap of the trace
 * hides are counted under the key NULL. */
int tmk_layers_finish(struct tmk_layers *s, const struct tmk_replay *rp, struct tmk_error *err);

/* Keys come in the order in which they were met. In each part they add up to its max_bytes. */
uint32_t tmk_layers_n(const struct tmk_layers *s);
const char *tmk_layers_key(const struct tmk_layers *s, uint32_t k); /* NULL: not known */
/* The bytes of a key, by part; borrowed until close. */
const uint64_t *tmk_layers_bytes(const struct tmk_layers *s, uint32_t k);

#endif
