/* SPDX-License-Identifier: MIT */
/* passes/oom/oom_fixes.h - what would have helped: each fix with the bytes that it saves and how
 * that is known.
 *
 *   replay    the allocator was replayed with it, at the limit of the scene
 *   measured  these bytes were there, in the trace
 *   estimate  computed from what was there, by a rule that the text states
 *
 * Fixes that would have avoided the OOM come first, then those for the first cause, then those
 * that cost the user less, then those that save more. An estimate counts as avoiding it only if
 * it covers all that the step is thought to need (oom_need.h).
 *
 * A fix is enough only if it avoids the OOM and it is known what comes after it: steps like this
 * one came to their end before and do not need more and more, and what it saves was measured. An
 * estimate is no proof, nor is a replay that ends where the job did. At most TMK_SHOWN_FIXES are
 * kept; of the allocator's settings that would do, the best. */
#ifndef TMK_PASSES_OOM_OOM_FIXES_H
#define TMK_PASSES_OOM_OOM_FIXES_H

#include "kit/arena.h"
#include "passes/oom/oom_case.h"

/* Fill in the fixes of `c`; their texts come from `arena`. Returns 0 or TMK_ENOMEM. */
int tmk_fixes_find(struct tmk_case *c, struct tmk_arena *arena);

/* "replay", "measured", "estimate". */
const char *tmk_proof_name(enum tmk_proof proof);

#endif
