/* SPDX-License-Identifier: MIT */
/* record/core/refusal.h - say why this process is not recorded, when it has no trace to say it in.
 *
 * The reason is a line in RUN/refused (trace/refusals.h). A process that cannot write there (full
 * disk, other user or root folder, no descriptor left) counts itself instead: in a page that it
 * shares with the process that it was forked from, which writes the lines when it ends, or else in
 * the run's account, which `tidemark run` reads. */
#ifndef TMK_RECORD_REFUSAL_H
#define TMK_RECORD_REFUSAL_H

#include <stdint.h>

#include "trace/layout.h"

/* Leave a line for the run; os_error 0: none. Does nothing the second time in a process, and when
 * no run was asked for. Do not call this under a filter that is not known, where it could kill
 * (sandbox.h). For a process that is about to install a filter (TMK_STOP_SECCOMP) it makes no
 * system calls but getpid and those of trace/refusals.h. */
void tmk_refusal_note(enum tmk_stop reason, int os_error);

/* Make the page that later forked children share. */
void tmk_refusal_prepare(void);
/* Leave lines for the children that could only count themselves. */
void tmk_refusal_tell(const char *run_folder);

#endif
