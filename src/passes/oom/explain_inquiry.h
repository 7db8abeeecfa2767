/* SPDX-License-Identifier: MIT */
/* passes/oom/explain_inquiry.h - what other passes know of a scene: steps before it, leaks, gaps in
 * the cache, and how the allocator does under other settings. One sweep for all scenes of a
 * process. */
#ifndef TMK_PASSES_OOM_EXPLAIN_INQUIRY_H
#define TMK_PASSES_OOM_EXPLAIN_INQUIRY_H

#include "passes/oom/oom_causes.h"

struct tmk_inquirer;

/* Sweeps `p`. 0, TMK_ENOMEM or what a sweep fails with. close takes NULL and returns NULL. */
int tmk_inquirer_open(struct tmk_process *p, const struct tmk_scenes *scenes,
                      const struct tmk_visitor *watcher, struct tmk_inquirer **ret_inquirer,
                      struct tmk_error *err);
struct tmk_inquirer *tmk_inquirer_close(struct tmk_inquirer *q);

/* All but the trials. 0 or TMK_ENOMEM; what is in *ret is borrowed until close. */
int tmk_inquirer_ask(struct tmk_inquirer *q, const struct tmk_scene *scene, struct tmk_inquiry *ret,
                     struct tmk_error *err);
/* Replays the allocator, where it is torch's and its blocks are known, within the limit of a first
 * verdict. 0 or TMK_ENOMEM. */
int tmk_inquirer_try(struct tmk_inquirer *q, const struct tmk_scene *scene,
                     const struct tmk_oom_verdict *verdict, struct tmk_inquiry *inquiry,
                     struct tmk_error *err);

#endif
