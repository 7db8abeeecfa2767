/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_changes.h - segments that began or ended and are not written yet.
 *
 * They wait for the next block: its stream is theirs. Meanwhile what is unmapped and mapped at one
 * moment cancels out, since a segment that grows may be recorded as one that ends and a larger one
 * that begins; and what was mapped piece by piece becomes one. */
#ifndef TMK_INTEROP_TORCH_TORCH_CHANGES_H
#define TMK_INTEROP_TORCH_TORCH_CHANGES_H

#include "interop/torch/torch_segments.h"

struct tmk_torch_change {
    struct tmk_torch_segment segment;
    uint64_t ns;
    bool begins;
};

struct tmk_torch_changes { /* zero is an empty one */
    struct tmk_torch_change *items;
    uint64_t n, room;
    bool failed; /* no memory */
};

void tmk_torch_changes_fini(struct tmk_torch_changes *c);
void tmk_torch_changes_add(struct tmk_torch_changes *c, const struct tmk_torch_change *change);
/* The streams of those that begin as `t` knows them now, then pieces made one. What is left is to
 * be written in order, and n set to 0. */
void tmk_torch_changes_settle(struct tmk_torch_changes *c, const struct tmk_torch_segments *t);

#endif
