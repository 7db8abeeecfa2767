/* SPDX-License-Identifier: MIT */
/* record/control/parts_table.c - what lower rooms call in higher ones (core/parts.h). */
#include "record/control/attach.h"
#include "record/control/session.h"
#include "record/core/parts.h"
#include "record/torch/block_hooks.h"
#include "record/torch/torch_slots.h"

const struct tmk_parts tmk_parts = {
    .arm = tmk_session_arm,
    .detach = tmk_attach_end,
    .switch_nodes = tmk_torch_slots_switch_nodes,
    .watch_modes = tmk_torch_slots_watch_modes,
    .block_stack = tmk_block_hook_stack,
    .note_oom = tmk_block_hook_note_oom,
};
