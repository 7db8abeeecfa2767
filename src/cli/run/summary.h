/* SPDX-License-Identifier: MIT */
/* cli/run/summary.h - what `run` says on stderr when its program has ended: ten lines, a
 * post-mortem when it ran out of memory, and the next command. */
#ifndef TMK_CLI_RUN_SUMMARY_H
#define TMK_CLI_RUN_SUMMARY_H

#include "cli/run/watch.h"

/* Merge the rings of processes that have ended. False: there is no trace. */
bool tmk_summary_settle(const char *folder);

/* Print the summary. `name` is the folder as the user wrote it. */
void tmk_summary_print(const char *name, const struct tmk_watch *w, const struct tmk_outcome *o);

/* Say why there may be no trace. `has_recorded`: there was one at some time. */
void tmk_summary_nothing(const struct tmk_watch *w, bool has_recorded);

#endif
