/* SPDX-License-Identifier: MIT */
/* record/core/parts.h - the calls from lower rooms to higher ones.
 *
 * Includes point down only, from control/ to core/. The few calls that go up, all on slow paths, go
 * through this table. control/parts_table.c fills it in. */
#ifndef TMK_RECORD_PARTS_H
#define TMK_RECORD_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tmk_lane;

struct tmk_parts {
    /* Arm for the first event of a thread, if idle. True when armed now. (control/session.h) */
    bool (*arm)(void);
    /* Detach for a client of the control socket. 0, or -1 with the reason. (control/attach.h) */
    int (*detach)(char *message, size_t size);
    /* Hook autograd's nodes, because modules are recorded, or unhook them. (torch/torch_slots.h) */
    void (*switch_nodes)(bool in);
    /* Hook what switches inference mode. (torch/torch_slots.h) */
    void (*watch_modes)(void);
    /* For blocks that torch takes from the driver directly: the stack of a block that is about to
     * be recorded, and the record of an allocation that failed. (torch/block_hooks.h) */
    uint32_t (*block_stack)(struct tmk_lane *lane);
    void (*note_oom)(uint16_t device, uint64_t size);
};
extern const struct tmk_parts tmk_parts;

#endif
