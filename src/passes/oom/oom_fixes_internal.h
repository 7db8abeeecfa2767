/* SPDX-License-Identifier: MIT */
/* passes/oom/oom_fixes_internal.h - what the files of oom_fixes.h share. */
#ifndef TMK_PASSES_OOM_OOM_FIXES_INTERNAL_H
#define TMK_PASSES_OOM_OOM_FIXES_INTERNAL_H

#include "kit/arena.h"
#include "passes/oom/oom_case.h"

struct tmk_fixing {
    struct tmk_case *c;
    struct tmk_arena *arena;
    bool failed; /* no memory */
};

/* Add a fix, its text from the format. `avoids` as the caller says: see tmk_fixing_covers. */
void tmk_fixing_add(struct tmk_fixing *f, struct tmk_fix fix, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What an estimate must save to have avoided it: all that the step is thought to need. */
bool tmk_fixing_covers(const struct tmk_case *c, uint64_t saves_bytes);
/* A twentieth of the limit: less is not worth a word. */
bool tmk_fixing_is_much(const struct tmk_case *c, uint64_t bytes);

/* Fixes of the model and its training: batch, checkpointing, dtypes, optimizer, LoRA ... */
void tmk_fixing_model(struct tmk_fixing *f);

#endif
