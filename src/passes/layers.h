/* SPDX-License-Identifier: MIT */
/* passes/layers.h - what was alive at each of many moments, by what the blocks have in common: the
 * layers of a timeline.
 *
 * What a block is for is known when it goes, so this is a second sweep. The first is a timeline
 * (timeline.h): of each of its parts the moment with the most bytes is taken, so that no peak is
 * lost however few the parts. A block counts at all moments that it saw; it is added where it came
 * and taken off where it went, and sums are made at the end: an event costs the same however many
 * moments there are, and memory is keys times moments.
 *
 *     sweep with tmk_timeline_visitor(t), then tmk_labels_init(&labels, p, &rp.state)
 *     tmk_strata_open(&labels, TMK_BY_CATEGORY, t, device, &s)
 *     sweep with tmk_strata_visitor(s), then tmk_strata_finish(s, &rp2, &err)
 *     tmk_strata_bytes(s, k)[i]: bytes of key k in part i */
#ifndef TMK_PASSES_LAYERS_H
#define TMK_PASSES_LAYERS_H

#include "passes/group.h"
#include "passes/timeline.h"
#include "trace/replay.h"

struct tmk_strata;

/* Labels and timeline must outlive it; `device` is the number of one of the timeline's. 0 or
 * TMK_ENOMEM. */
int tmk_strata_open(const struct tmk_labels *l, enum tmk_by by, const struct tmk_timeline *t,
                    uint32_t device, struct tmk_strata **ret_strata);
struct tmk_strata *tmk_strata_close(struct tmk_strata *s);
struct tmk_visitor tmk_strata_visitor(struct tmk_strata *s);
/* After the sweep: 0 or TMK_ENOMEM. Of bytes whose blocks a gap of the trace hides, nothing is
 * known: they are the key NULL's. */
int tmk_strata_finish(struct tmk_strata *s, const struct tmk_replay *rp, struct tmk_error *err);

/* In the order in which they were met. The keys of a part add up to its max_bytes. */
uint32_t tmk_strata_n(const struct tmk_strata *s);
const char *tmk_strata_key(const struct tmk_strata *s, uint32_t k); /* NULL: not known */
/* By part; borrowed until close. */
const uint64_t *tmk_strata_bytes(const struct tmk_strata *s, uint32_t k);

#endif
