/* SPDX-License-Identifier: MIT */
/* record/refusal.h - say why this process is not recorded, where it has no trace to say it in.
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
 * for. For a filter that may kill (TMK_STOP_SANDBOX, TMK_STOP_SECCOMP) it makes getpid and the
 * calls named in trace/refusals.h only. */
void tmk_refusal_note(enum tmk_stop reason, int os_error);
/* The same, for who may not even ask for the process's number. */
void tmk_refusal_note_as(uint32_t pid, enum tmk_stop reason, int os_error);

/* Make the page that is shared with children that are forked from now on. */
void tmk_refusal_prepare(void);
/* Leave lines for the children that could only count themselves. */
void tmk_refusal_tell(const char *run_folder);

#endif
