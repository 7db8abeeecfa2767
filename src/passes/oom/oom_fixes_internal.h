/* SPDX-License-Identifier: MIT */
/* passes/oom/oom_fixes_internal.h - shared by oom_fixes.c and oom_fixes_model.c. */
#ifndef TMK_PASSES_OOM_OOM_FIXES_INTERNAL_H
#define TMK_PASSES_OOM_OOM_FIXES_INTERNAL_H

#include "kit/arena.h"
#include "passes/oom/oom_case.h"

struct tmk_fixing {
    struct tmk_case *c;
    struct tmk_arena *arena;
    bool failed; /* no memory */
};

/* Add a fix with a formatted text. The caller decides `avoids`: see tmk_fixing_covers(). */
void tmk_fixing_add(struct tmk_fixing *f, struct tmk_fix fix, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* True when an estimate saves all that the step is thought to need, so that it counts as
 * avoiding the OOM. */
bool tmk_fixing_covers(const struct tmk_case *c, uint64_t saves_bytes);
/* True for a twentieth of the limit or more: less is not worth reporting. */
bool tmk_fixing_is_much(const struct tmk_case *c, uint64_t bytes);

/* Add fixes of the model and its training: batch, checkpointing, dtypes, optimizer, LoRA ... */
void tmk_fixing_model(struct tmk_fixing *f);

#endif
