/* SPDX-License-Identifier: MIT */
/* record/core/torch_state.h - what is known of torch in this process, and of this recording of it.
 *
 * The hooks of torch's blocks (torch/block_hooks.c) write most of it; the core, the driver's side
 * and the training's read it. */
#ifndef TMK_RECORD_TORCH_STATE_H
#define TMK_RECORD_TORCH_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What the short way (fast_path.h) hangs on, and what the long one looks at for every block. */
struct tmk_torch_hot {
    _Atomic uint32_t host_seen;       /* in this recording host blocks were recorded */
    _Atomic uint32_t host_ends;       /* and in this one no more are */
    _Atomic uint32_t host_over;       /* nor are any on their way */
    _Atomic uint64_t host_ends_ns;    /* when */
    _Atomic bool streams_used;        /* others than a device's default one may be */
    _Atomic bool is_listened_to;      /* somebody may: torch.profiler, for one */
    _Atomic bool is_tallied;          /* somebody wants to know what is allocated now (tally.h) */
    _Atomic uintptr_t current_stream; /* of the accelerator; 0: not looked for, 1: not there */
    _Atomic uint64_t cards;           /* CUDA's devices that were spoken of, a bit each */
    _Atomic uintptr_t node_real;      /* what the hook of nodes stands in front of; 0: not found */
};
extern struct tmk_torch_hot tmk_torch_hot;

/* Streams other than the default one may be used from now on; somebody may listen to torch's
 * reports of blocks. (Both may have happened before the hooks were there to see it.) */
void tmk_torch_expect_streams(void);
void tmk_torch_expect_listeners(void);

/* Torch has said something of this device itself: its blocks are its own, not the driver's. */
bool tmk_torch_has_said(uint16_t device);

#endif
