/* SPDX-License-Identifier: MIT */
/* passes/oom/oom_case.h - one OOM or near miss with all that is known of it: scene, inquiry,
 * need, verdict and what would have helped. */
#ifndef TMK_PASSES_OOM_OOM_CASE_H
#define TMK_PASSES_OOM_OOM_CASE_H

#include "passes/oom/oom_causes.h"
#include "passes/oom/oom_need.h"
#include "passes/oom/oom_scene.h"

enum tmk_proof { TMK_PROOF_REPLAY, TMK_PROOF_MEASURED, TMK_PROOF_ESTIMATE };

struct tmk_fix {
    const char *kind;     /* for machines: "expandable_segments", "leak", "batch" ... */
    const char *text;     /* for people; one or two sentences */
    const char *conf;     /* for PYTORCH_CUDA_ALLOC_CONF; NULL: no such fix */
    uint64_t saves_bytes; /* may be TMK_BYTES_UNKNOWN */
    enum tmk_proof proof;
    bool avoids;    /* this request would have been served */
    bool is_enough; /* and the rest of the job: steps like this one are known to their end */
    double factor; /* batch: the part of it that fits; outlier: how many times the usual. 0: none */
    unsigned cost; /* to the user: 0 an environment variable ... 9 another GPU */
    bool is_for_cause;
};

enum { TMK_MAX_FIXES = 24, TMK_SHOWN_FIXES = 5 };

struct tmk_case { /* all that is known */
    const struct tmk_process *p;
    struct tmk_scene scene;
    struct tmk_inquiry inquiry;
    struct tmk_need need;
    struct tmk_oom_verdict verdict;
    struct tmk_fix fixes[TMK_MAX_FIXES]; /* the best first */
    uint32_t n_fixes;
};

#endif
