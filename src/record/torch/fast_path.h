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

#include "record/torch/torch_hook.h"

#define TMK_NAME_USAGE "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"

/* Stands in front of the function of that name. */
tmk_usage_function tmk_fast_path_usage;

#endif
