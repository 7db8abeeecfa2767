/* SPDX-License-Identifier: MIT */
/* record/torch/fast_path.h - the short way of torch's blocks: nothing is to be seen to but the
 * block itself.
 *
 * Most of what a training's blocks cost is not what is done for them but what has to be fetched for
 * it, code first: the caches have gone through everything else since the block before. So that is
 * small; whatever is not usual goes to block_hooks.c, which also says whether blocks may go this
 * way.
 *
 * To read the counter is most of what a free costs, above all in virtual machines. So it has the
 * time of the thread's last record, and a nanosecond or a few more, if that is of blocks too, the
 * device's last block came or went on this thread, and the packer has been asleep since, which it
 * is for at most 20 ms at a time: it is early by less than that, or than the packer's thread is
 * kept from running. And in its place all the same: torch's lock of the device is held. */
#ifndef TMK_RECORD_FAST_PATH_H
#define TMK_RECORD_FAST_PATH_H

#include "record/core/lane.h"
#include "record/core/recorder.h"
#include "record/torch/block_hooks.h"

#define TMK_NAME_USAGE "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"

/* Stands in front of the function of that name. */
tmk_usage_function tmk_short_usage;

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
static inline struct tmk_torch_said *tmk_short_said(unsigned device)
{
    return &tmk_short.said[device % TMK_TORCH_DEVICES];
}

/* It was said that so much is reserved, in this recording. */
static inline bool tmk_short_has_said(const struct tmk_torch_said *said, uint32_t generation,
                                      uint16_t torch_device, uint64_t reserved_bytes)
{
    return !tmk_seldom(atomic_load_explicit(&said->generation, memory_order_relaxed) !=
                       generation) &&
           !tmk_seldom(atomic_load_explicit(&said->torch_device, memory_order_relaxed) !=
                       torch_device) &&
           !tmk_seldom(said->reserved_bytes != reserved_bytes);
}

/* The last record on this thread is of blocks, and no other thread had one of the device since: so
 * what is written now may have its time. */
static inline bool tmk_short_may_share(const struct tmk_lane *lane,
                                       const struct tmk_torch_said *said)
{
    return !tmk_seldom(!lane->is_block) &&
           !tmk_seldom(atomic_load_explicit(&said->thread, memory_order_relaxed) != lane->thread);
}

/* The next free of the device, or of all, has its own time: something is on record that its thread
 * does not know of. Of one device under torch's lock of it; of all, those that are being written
 * may be missed. */
static inline void tmk_short_end_sharing(uint16_t device)
{
    atomic_store_explicit(&tmk_short_said(device)->thread, 0, memory_order_relaxed);
}

static inline void tmk_short_end_all_sharing(void)
{
    for (unsigned i = 0; i < TMK_TORCH_DEVICES; i++)
        atomic_store(&tmk_short.said[i].thread, 0);
}

#endif
