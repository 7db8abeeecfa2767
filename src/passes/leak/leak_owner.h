/* SPDX-License-Identifier: MIT */
/* passes/leak/leak_owner.h - which line owns blocks that are kept together, and what may keep them.
 * Part of leaks.h. */
#ifndef TMK_PASSES_LEAK_LEAK_OWNER_H
#define TMK_PASSES_LEAK_LEAK_OWNER_H

#include "model/run.h"
#include "trace/defs.h"

/* The line of `stacks[root]` in the innermost function that all the stacks were called from,
 * outside of calls of modules. False when they have none in common. */
bool tmk_leak_common_line(const struct tmk_process *p, const uint32_t *stacks, uint32_t n,
                          uint32_t root, struct tmk_frame *ret);

/* The stack has that line in it. */
bool tmk_leak_passes(const struct tmk_process *p, uint32_t stack, const struct tmk_frame *line);

/* The line was called by torch, not as a module's forward: a hook. */
bool tmk_leak_is_hook(const struct tmk_process *p, uint32_t stack);

#endif
