/* SPDX-License-Identifier: MIT */
/* passes/leak/leak_owner.h - which line owns blocks that are kept together, and what may keep
 * them. It is part of leaks.h. */
#ifndef TMK_PASSES_LEAK_LEAK_OWNER_H
#define TMK_PASSES_LEAK_LEAK_OWNER_H

#include "model/run.h"
#include "trace/defs.h"

/* Find the line of `stacks[root]` in the innermost function that all the stacks were called
 * from, outside of module calls. Returns false when they have none in common. */
bool tmk_leak_common_line(const struct tmk_process *p, const uint32_t *stacks, uint32_t n,
                          uint32_t root, struct tmk_frame *ret);

/* True when the stack contains that line. */
bool tmk_leak_passes(const struct tmk_process *p, uint32_t stack, const struct tmk_frame *line);

/* True when torch called the line, but not as a module's forward: it is a hook. */
bool tmk_leak_is_hook(const struct tmk_process *p, uint32_t stack);

/* True when the texts are equal or both NULL. */
bool tmk_leak_is_same_text(const char *a, const char *b);

#endif
