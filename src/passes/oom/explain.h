/* SPDX-License-Identifier: MIT */
/* passes/oom/explain.h - why a process ran out of memory, or nearly did, and what would have
 * helped.
 *
 * A first sweep takes the scenes (oom_scene.h). Only a process with a scene is swept again, to
 * ask what leaks, what pins the cache, and how the allocator does under other settings. Causes
 * are judged by the rules of oom_causes.h, fixes are found by those of oom_fixes.h. */
#ifndef TMK_PASSES_OOM_EXPLAIN_H
#define TMK_PASSES_OOM_EXPLAIN_H

#include "base/error.h"
#include "model/run.h"
#include "passes/oom/oom_case.h"
#include "trace/replay.h"

struct tmk_explanation;

/* Sweep the process, at most twice; `watcher` (may be NULL) is told of progress. The process
 * must outlive the explanation. Returns 0, TMK_ENOMEM or a sweep's error. close takes NULL and
 * returns NULL. */
int tmk_explanation_open(struct tmk_process *p, const struct tmk_visitor *watcher,
                         struct tmk_explanation **ret_explanation, struct tmk_error *err);
struct tmk_explanation *tmk_explanation_close(struct tmk_explanation *x);

uint64_t tmk_explanation_n_ooms(const struct tmk_explanation *x); /* that happened */
/* The cases that are explained: OOMs in order of time (the first ones and the last), then near
 * misses. Borrowed until close. */
uint64_t tmk_explanation_n(const struct tmk_explanation *x);
const struct tmk_case *tmk_explanation_get(const struct tmk_explanation *x, uint64_t i);

#endif
