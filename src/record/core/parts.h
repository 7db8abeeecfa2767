/* SPDX-License-Identifier: MIT */
/* record/core/parts.h - what lower rooms call in higher ones.
 *
 * Includes point down only, from control/ to core/. The few calls that go up, all of them on slow
 * paths, go through this table; control/parts_table.c fills it in. */
#ifndef TMK_RECORD_PARTS_H
#define TMK_RECORD_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tmk_lane;

struct tmk_parts {
    /* The first event of a thread: arm if idle. True when armed now. (control/session.h) */
    bool (*arm)(void);
    /* A client of the control socket asks to detach. 0, or -1 with the reason. (control/attach.h)
     */
    int (*detach)(char *message, size_t size);
    /* Modules are recorded, or are not: hook autograd's nodes or not. (torch/torch_slots.h) */
    void (*switch_nodes)(bool in);
    /* Blocks that torch takes from the driver directly: the stack of one that is about to be
     * recorded, and an allocation that failed. (torch/block_hooks.h) */
    uint32_t (*block_stack)(struct tmk_lane *lane);
    void (*note_oom)(uint16_t device, uint64_t size);
};
extern const struct tmk_parts tmk_parts;

#endif
