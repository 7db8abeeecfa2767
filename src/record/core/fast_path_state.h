/* SPDX-License-Identifier: MIT */
/* record/core/fast_path_state.h - what others do with the state of the fast path of torch's blocks:
 * close the path, and share the timestamp of a block's record.
 *
 * The state is in fast_path_line.h, the path itself in torch/fast_path.h. */
#ifndef TMK_RECORD_FAST_PATH_STATE_H
#define TMK_RECORD_FAST_PATH_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "record/core/fast_path_line.h"
#include "record/core/lane.h"
#include "record/core/recorder.h"

/* Send blocks to the slow path until is_all_usual() (torch/block_hooks.c) has been asked again.
 * Call this after something has changed that is_all_usual() looks at. */
static inline void tmk_fast_path_close(void)
{
    atomic_store(&tmk_fast_path.generation, 0);
}

/* Have the next block go to the bridge. */
static inline void tmk_fast_path_unsettle(void)
{
    atomic_store(&tmk_fast_path.settled, 0);
}

/* Mark a condition that is rarely true, so that its code goes out of the way. */
static inline bool tmk_seldom(bool is)
{
    return __builtin_expect(is, 0);
}

/* Swap the two bytes of a device's number: torch's number of an accelerator and ours. */
static inline uint16_t tmk_accelerator_of(uint16_t torch_device)
{
    return __builtin_bswap16(torch_device);
}

/* The entry of an accelerator, by our number. */
static inline struct tmk_fast_path_device *tmk_fast_path_device_of(unsigned device)
{
    return &tmk_fast_path.said[device % TMK_TORCH_DEVICES];
}

/* True when this recording already says that `reserved_bytes` are reserved on the device. */
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

/* True when the thread's last record is a block's and no other thread has recorded one of the
 * device since: what is written now may reuse that record's timestamp. */
static inline bool tmk_fast_path_may_share(const struct tmk_lane *lane,
                                           const struct tmk_fast_path_device *said)
{
    return !tmk_seldom(!lane->is_block) &&
           !tmk_seldom(atomic_load_explicit(&said->thread, memory_order_relaxed) != lane->thread);
}

/* Have the next free of the device (or of every device) read its own timestamp, because something
 * was recorded that the freeing thread does not know of. For one device torch's lock of it must be
 * held; for all of them, records that are being written may be missed. */
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
