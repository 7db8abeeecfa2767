/* SPDX-License-Identifier: MIT */
/* passes/oom/oom_events.h - the OOMs of a part of a trace, read without a replay.
 *
 * A monitor asks again and again whether a process has run out of memory. Only the chunks that have
 * come since are read, and of those only the few events that are no blocks, unless one of them is
 * an OOM. ooms.h says more about each, from a whole sweep. */
#ifndef TMK_PASSES_OOM_OOM_EVENTS_H
#define TMK_PASSES_OOM_OOM_EVENTS_H

#include "model/run.h"
#include "trace/events.h"

/* Call `heard` for each OOM after `after_ns` (trace time), in order of time. 0, or TMK_ENOMEM.
 * Chunks that cannot be read are left out. */
int tmk_oom_events_after(const struct tmk_process *p, uint64_t after_ns,
                         void (*heard)(void *arg, const struct tmk_event *ev), void *arg);

#endif
