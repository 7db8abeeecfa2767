/* SPDX-License-Identifier: MIT */
/* record/core/refusal.h - say why this process is not recorded, where it has no trace to say it in.
 *
 * It is a line in RUN/refused (trace/refusals.h). A process that cannot write there (a full disk,
 * another user or root folder, no descriptor left) counts itself: in a page that it shares with the
 * process that it was forked from, which says it when it ends, else in the run's account, which
 * `tidemark run` reads. */
#ifndef TMK_RECORD_REFUSAL_H
#define TMK_RECORD_REFUSAL_H

#include <stdint.h>

#include "trace/layout.h"

/* Leave a line for the run; os_error 0: none. Once in a process, and nothing when no run was asked
 * for. Not for a process under a filter that nobody knows, where it could kill (sandbox.h). One
 * that is about to install a filter (TMK_STOP_SECCOMP) makes no calls but getpid and those of
 * trace/refusals.h for it. */
void tmk_refusal_note(enum tmk_stop reason, int os_error);

/* Make the page that is shared with children that are forked from now on. */
void tmk_refusal_prepare(void);
/* Leave lines for the children that could only count themselves. */
void tmk_refusal_tell(const char *run_folder);

#endif
