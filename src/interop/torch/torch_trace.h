/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_trace.h - one device's list in a torch snapshot's device_traces, and what
 * is left at its end. */
#ifndef TMK_INTEROP_TORCH_TORCH_TRACE_H
#define TMK_INTEROP_TORCH_TORCH_TRACE_H

#include "interop/out/export.h"
#include "interop/torch/torch_blocks.h"
#include "interop/torch/torch_entries.h"
#include "interop/torch/torch_segments.h"

struct tmk_torch_left { /* what is left at the end of the requested time; both lists by address */
    struct tmk_torch_block *blocks;
    uint64_t n_blocks;
    struct tmk_torch_segment *segments;
    uint64_t n_segments;
    bool made_up; /* some segments were made up */
};

/* Write the list. *ret is the caller's to free, also on failure. */
int tmk_torch_trace_write(struct tmk_torch_file *f, const struct tmk_export *x, uint16_t device,
                          struct tmk_torch_left *ret, struct tmk_error *err);
void tmk_torch_left_fini(struct tmk_torch_left *left);

#endif
