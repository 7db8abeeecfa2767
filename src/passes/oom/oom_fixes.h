/* SPDX-License-Identifier: MIT */
/* passes/oom/oom_fixes.h - what would have helped, each with the bytes that it saves and how that
 * is known.
 *
 *   replay    the allocator was replayed with it, at the limit of the scene
 *   measured  these bytes were there, in the trace
 *   estimate  computed from what was there, by a rule that the text tells
 *
 * Order: what would have avoided it before what would not, then what goes for the first cause, then
 * what costs the user less, then what saves more. An estimate counts as avoiding it only if it
 * covers all that the step is thought to need (oom_need.h). */
#ifndef TMK_PASSES_OOM_OOM_FIXES_H
#define TMK_PASSES_OOM_OOM_FIXES_H

#include "kit/arena.h"
#include "passes/oom/oom_causes.h"
#include "passes/oom/oom_need.h"
#include "passes/oom/oom_scene.h"

enum tmk_proof { TMK_PROOF_REPLAY, TMK_PROOF_MEASURED, TMK_PROOF_ESTIMATE };

struct tmk_fix {
    const char *kind;     /* for machines: "expandable_segments", "leak", "batch" ... */
    const char *text;     /* for people; one or two sentences */
    const char *conf;     /* of the allocator, PYTORCH_CUDA_ALLOC_CONF; NULL: it is no such fix */
    uint64_t saves_bytes; /* TMK_BYTES_UNKNOWN */
    enum tmk_proof proof;
    bool avoids;   /* it would have been enough */
    double factor; /* batch: the part of it that fits; outlier: how many times the usual. 0: none */
    unsigned cost; /* to the user: 0 a variable of the environment ... 9 another card */
    bool is_for_cause;
};

enum { TMK_MAX_FIXES = 24 };

struct tmk_case { /* all that is known */
    const struct tmk_process *p;
    struct tmk_scene scene;
    struct tmk_inquiry inquiry;
    struct tmk_need need;
    struct tmk_oom_verdict verdict;
    struct tmk_fix fixes[TMK_MAX_FIXES]; /* the best first */
    uint32_t n_fixes;
};

/* Fill in the fixes of `c`; texts are taken from `arena`. 0 or TMK_ENOMEM. */
int tmk_fixes_find(struct tmk_case *c, struct tmk_arena *arena);

/* "replay", "measured", "estimate". */
const char *tmk_proof_name(enum tmk_proof proof);

#endif
