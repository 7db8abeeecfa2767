/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_changes.h - segments that began or ended but are not yet written.
 *
 * They wait for the next block, since a segment gets its stream. Meanwhile what is unmapped and
 * mapped at one moment cancels out, since a segment that grows may be recorded as one that ends
 * and a larger one that begins; and pieces that were mapped one by one become one. */
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
/* Give segments that begin the streams that `t` now knows, then join pieces. Write what is left
 * in order, and set n to 0. */
void tmk_torch_changes_settle(struct tmk_torch_changes *c, const struct tmk_torch_segments *t);

#endif
