/* SPDX-License-Identifier: MIT */
/* record/control/preexisting.h - record the blocks that were alive before we were attached.
 *
 * torch's CUDA allocator can list its blocks (torch.cuda.memory_snapshot()); each is recorded as an
 * allocation with the stack "[alive before attach]". Making the list takes a while, and meanwhile
 * blocks come and go. So all of them get the time of the moment before the list was made, and
 * nothing is packed until they are recorded. A block that is freed meanwhile is then freed after it
 * was recorded.
 *
 * This needs the GIL, which a job may hold for long. So it is done on a thread of its own, and the
 * caller waits only for the hooks. Host blocks have no such list; they appear when they are
 * freed. */
#ifndef TMK_RECORD_PREEXISTING_H
#define TMK_RECORD_PREEXISTING_H

#include "record/torch/torch_slots.h"

/* Put the hooks in and record what is there. Returns when the hooks are in. */
struct tmk_slot_count tmk_preexisting_hook(void);

#endif
