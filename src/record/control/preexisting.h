/* SPDX-License-Identifier: MIT */
/* record/control/preexisting.h - blocks that were alive before we were attached.
 *
 * torch's CUDA allocator can list its blocks (torch.cuda.memory_snapshot()); each is recorded as an
 * allocation on the stack "[alive before attach]". The list takes a while, and meanwhile blocks
 * come and go: so all of them get the time of the moment before the hooks were put in, and nothing
 * is packed until they are there. A block that is freed meanwhile is then freed after it was noted.
 *
 * Needs the GIL, which a job may hold for long: done on a thread of its own, for which nobody waits
 * but for the hooks. Host blocks have no such list; they appear when they are freed. */
#ifndef TMK_RECORD_PREEXISTING_H
#define TMK_RECORD_PREEXISTING_H

#include "record/torch/torch_slots.h"

/* Put the hooks in and note what is there. Returns when the hooks are in. */
struct tmk_slot_count tmk_preexisting_hook(void);

#endif
