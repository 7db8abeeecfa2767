/* SPDX-License-Identifier: MIT */
/* record/torch/fast_path.h - the fast path of torch's blocks, for when a block is all there is to
 * record.
 *
 * Most of the cost of a block is not the work but fetching what it needs, code first: since the
 * block before, the caches have gone through everything else. So the fast path is small. Whatever
 * is unusual goes to block_hooks.c, which also decides whether blocks may take this path.
 *
 * Reading the TSC dominates the cost of a free, above all in virtual machines. A free reuses the
 * timestamp of the thread's previous record, plus a few ticks, when all of this holds:
 *
 *    1. that record is of a block too
 *    2. this thread also made the device's last block record
 *    3. the packer has been asleep since
 *
 * The packer sleeps for at most 20 ms, so the free's time is early by less than that, or than the
 * packer's thread is kept from running. Its order is right all the same: torch's lock of the device
 * is held. */
#ifndef TMK_RECORD_FAST_PATH_H
#define TMK_RECORD_FAST_PATH_H

#include "record/torch/torch_hook.h"

#define TMK_NAME_USAGE "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"

/* Stands in front of the function of this name. */
tmk_usage_function tmk_fast_path_usage;

#endif
