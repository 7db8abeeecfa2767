/* SPDX-License-Identifier: MIT */
/* passes/leak/leak_owner.h - which line owns blocks that are kept together, and what may keep
 * them. It is part of leaks.h. */
#ifndef TMK_PASSES_LEAK_LEAK_OWNER_H
#define TMK_PASSES_LEAK_LEAK_OWNER_H

#include "model/run.h"
#include "passes/leak/leaks_internal.h"
#include "trace/defs.h"

/* Find the line of `stacks[root]` in the innermost function that all the stacks were called
 * from, outside of module calls. Returns false when they have none in common. */
bool tmk_leak_common_line(const struct tmk_process *p, const uint32_t *stacks, uint32_t n,
                          uint32_t root, struct tmk_frame *ret);

/* True when the stack contains that line. */
bool tmk_leak_passes(const struct tmk_process *p, uint32_t stack, const struct tmk_frame *line);

/* True when torch called the line, but not as a module's forward: it is a hook. (The wrapper of a
 * function under @torch.no_grad() is not one.) */
bool tmk_leak_is_hook(const struct tmk_process *p, uint32_t stack);

/* Say of a line whether autograd's graph may keep it: may_be_graph and is_loose. */
void tmk_leak_find_graph_character(const struct tmk_leakage *l, struct tmk_leak_line *line);

/* True when `other`, which rises in the same steps, may be kept by the graph that keeps `seed`. */
bool tmk_leak_may_share_graph(const struct tmk_leakage *l, const struct tmk_leak_line *seed,
                              const struct tmk_leak_line *other);

/* True when a graph keeps the line: it may, there are more blocks every time, and no tensor of
 * Python's has most of them. Where Python was not asked: they are of several stacks, and not just
 * one detached tensor and its trimmings. */
bool tmk_leak_is_kept_by_graph(const struct tmk_leakage *l, const struct tmk_leak_line *line);

/* Find the group of a line that was made last among those that grow, and the line that owns the
 * graph. Nothing that is kept hangs on what a backward makes, or on what the model is given: they
 * are the root only where there is nothing else. */
void tmk_leak_find_root(const struct tmk_leakage *l, struct tmk_leak_line *line);
void tmk_leak_find_owner(struct tmk_leakage *l, struct tmk_leak_line *line);

/* What holds the line's blocks, as Python said; NULL: not known. */
const char *tmk_leak_holder_of(const struct tmk_leakage *l, const struct tmk_leak_line *line);

/* True when the texts are equal or both NULL. */
bool tmk_leak_is_same_text(const char *a, const char *b);

#endif
