/* SPDX-License-Identifier: MIT */
/* passes/diff/align.h - what two processes have in common: which stacks are the same place in
 * the program, and which module names are the same module.
 *
 * Two versions of a program are compared, so lines may have moved and folders may differ. A
 * stack stands for the frames that the user wrote (all of them where there are none). Each frame
 * counts with its file without the installation folder, its function, and its line relative to
 * the function's first line where that is known. A file under a new name is the same where most of
 * its functions are (renamed_files.h). So an edit elsewhere in a file changes nothing.
 * Stacks of the same functions that still differ in lines are matched in the order of their
 * lines if they hold as many blocks or as many bytes: that is an edit within the function.
 *
 * A module is the same under another name when a wrapper (DDP, FSDP, torch.compile, peft) was put
 * around it: "module.", "_orig_mod.", "base_model.model." and the like are left out, on both sides,
 * if that makes more names match. */
#ifndef TMK_PASSES_DIFF_ALIGN_H
#define TMK_PASSES_DIFF_ALIGN_H

#include "passes/peak.h"

enum tmk_side { TMK_SIDE_A, TMK_SIDE_B };

struct tmk_align;

/* Compare what the peaks found, even if that is nothing; they must outlive the result. Returns 0
 * or TMK_ENOMEM. */
int tmk_align_open(struct tmk_peak *const peaks[2], struct tmk_align **ret_align,
                   struct tmk_error *err);
struct tmk_align *tmk_align_close(struct tmk_align *x);

/* A number from 1 that equal stacks of both sides share; 0: not known. */
uint32_t tmk_align_stack(const struct tmk_align *x, enum tmk_side side, uint32_t stack);
/* How many there are; all numbers are smaller. */
uint32_t tmk_align_n_stacks(const struct tmk_align *x);

/* The name of a module or tensor as both sides call it: `name` itself (may be NULL) where it
 * needs no change, else a text that is good until close. Also NULL without memory. */
const char *tmk_align_name(struct tmk_align *x, const char *name);
/* True when names are compared without the parts that wrappers add. */
bool tmk_align_unwraps(const struct tmk_align *x);

/* Write the name without the parts that wrappers add into a buffer of at least strlen(name) + 1. */
void tmk_name_unwrap(const char *name, char *ret);

#endif
