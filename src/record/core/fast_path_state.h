/* SPDX-License-Identifier: MIT */
/* record/core/fast_path_state.h - what others may do with the state of the fast path of torch's
 * blocks (fast_path_line.h, torch/fast_path.h): end it, and share the time of a block's record. */
#ifndef TMK_RECORD_FAST_PATH_STATE_H
#define TMK_RECORD_FAST_PATH_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "record/core/fast_path_line.h"
#include "record/core/lane.h"
#include "record/core/recorder.h"

/* Something was changed of which block_hooks.c's is_all_usual() says that it lets blocks go the
 * short way; said after the change. */
static inline void tmk_fast_path_close(void)
{
    atomic_store(&tmk_fast_path.generation, 0);
}

/* The next block is to go to the bridge. */
static inline void tmk_fast_path_unsettle(void)
{
    atomic_store(&tmk_fast_path.settled, 0);
}

/* For conditions of which each is to be out of the way. */
static inline bool tmk_seldom(bool is)
{
    return __builtin_expect(is, 0);
}

/* Our number of one of torch's accelerators, and torch's of one of ours: two bytes, swapped. */
static inline uint16_t tmk_accelerator_of(uint16_t torch_device)
{
    return __builtin_bswap16(torch_device);
}

/* Of one of ours. */
static inline struct tmk_fast_path_device *tmk_fast_path_device_of(unsigned device)
{
    return &tmk_fast_path.said[device % TMK_TORCH_DEVICES];
}

/* It was said that so much is reserved, in this recording. */
static inline bool tmk_fast_path_has_said(const struct tmk_fast_path_device *said,
                                          uint32_t generation, uint16_t torch_device,
                                          uint64_t reserved_bytes)
{
    return !tmk_seldom(atomic_load_explicit(&said->generation, memory_order_relaxed) !=
                       generation) &&
           !tmk_seldom(atomic_load_explicit(&said->torch_device, memory_order_relaxed) !=
                       torch_device) &&
           !tmk_seldom(said->reserved_bytes != reserved_bytes);
}

/* The last record on this thread is of blocks, and no other thread had one of the device since: so
 * what is written now may have its time. */
static inline bool tmk_fast_path_may_share(const struct tmk_lane *lane,
                                           const struct tmk_fast_path_device *said)
{
    return !tmk_seldom(!lane->is_block) &&
           !tmk_seldom(atomic_load_explicit(&said->thread, memory_order_relaxed) != lane->thread);
}

/* The next free of the device, or of all, has its own time: something is on record that its thread
 * does not know of. Of one device under torch's lock of it; of all, those that are being written
 * may be missed. */
static inline void tmk_fast_path_end_sharing(uint16_t device)
{
    atomic_store_explicit(&tmk_fast_path_device_of(device)->thread, 0, memory_order_relaxed);
}

static inline void tmk_fast_path_end_all_sharing(void)
{
    for (unsigned i = 0; i < TMK_TORCH_DEVICES; i++)
        atomic_store(&tmk_fast_path.said[i].thread, 0);
}

#endif
