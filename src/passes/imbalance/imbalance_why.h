/* SPDX-License-Identifier: MIT */
/* passes/imbalance/imbalance_why.h - what the rank with the largest peak has more than a typical
 * one: both are replayed, and their peaks compared block by block (passes/diff). */
#ifndef TMK_PASSES_IMBALANCE_IMBALANCE_WHY_H
#define TMK_PASSES_IMBALANCE_IMBALANCE_WHY_H

#include "passes/imbalance/imbalance.h"

/* Fill in b->why, which stays unknown where a trace no longer has the blocks of its peak. Nothing
 * is done when both ranks are alike. Returns 0, TMK_ENOMEM, or what a replay returns. */
int tmk_imbalance_find_why(struct tmk_imbalance *b, struct tmk_run *run, struct tmk_error *err);

#endif
