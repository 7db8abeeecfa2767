/* SPDX-License-Identifier: MIT */
/* cli/front/refused.h - says which processes of a run left no trace, and why (trace/refusals.h). */
#ifndef TMK_CLI_FRONT_REFUSED_H
#define TMK_CLI_FRONT_REFUSED_H

#include <stddef.h>

#include "model/run.h"
#include "trace/layout.h"

/* Tell `sentence` each reason once: "process 12 and 3 others: REASON". Returns how many. Processes
 * with a trace in `run` are left out; `run` may be NULL. */
size_t tmk_refused_each(const char *folder, struct tmk_run *run,
                        void (*sentence)(void *arg, const char *text), void *arg);

/* Note a process that could not do so itself (pid 0: not known), in the run's file or, where that
 * cannot be written, for the time of this command. */
void tmk_refused_add(const char *folder, uint32_t pid, enum tmk_stop reason);

/* Forget what an earlier run of this name left beside the folder. */
void tmk_refused_clear(const char *folder);

/* Move what lies beside the folder into it, or remove it where there is no folder. Call it when the
 * run is over. */
void tmk_refused_settle(const char *folder);

#endif
