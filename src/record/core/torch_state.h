/* SPDX-License-Identifier: MIT */
/* record/core/torch_state.h - what is known of torch in this process and in this recording.
 *
 * The hooks of torch's blocks (torch/block_hooks.c) write most of it. The rooms for the driver and
 * for training read it. */
#ifndef TMK_RECORD_TORCH_STATE_H
#define TMK_RECORD_TORCH_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* State of torch that decides whether the fast path (torch/fast_path.h) is open, and that the slow
 * path reads for every block. */
struct tmk_torch_hot {
    _Atomic uint32_t host_seen;    /* the recording in which host blocks were recorded */
    _Atomic uint32_t host_ends;    /* the recording in which no more host blocks are recorded */
    _Atomic uint32_t host_over;    /* the recording in which no host block is on its way either */
    _Atomic uint64_t host_ends_ns; /* when host blocks ended */
    _Atomic bool streams_used;     /* streams other than a device's default one may be in use */
    /* somebody may listen to reports of blocks, such as torch.profiler */
    _Atomic bool is_listened_to;
    _Atomic bool is_tallied;          /* somebody wants to know what is allocated now (tally.h) */
    _Atomic uintptr_t current_stream; /* torch's function for the current stream; 0: not looked for,
                                         1: there is none */
    _Atomic uint64_t cuda_devices;    /* CUDA devices that torch has reported, one bit each */
    /* torch's function behind the hook of autograd's nodes; 0: not found */
    _Atomic uintptr_t node_real;
};
extern struct tmk_torch_hot tmk_torch_hot;

/* Expect streams other than the default one, or listeners to reports of blocks, from now on.
 * (Either may have come before the hooks were there to see it.) */
void tmk_torch_expect_streams(void);
void tmk_torch_expect_listeners(void);

/* True when torch has reported this device itself: its blocks come from torch's allocator, not
 * directly from the driver. */
bool tmk_torch_has_said(uint16_t device);

#endif
