/* SPDX-License-Identifier: MIT */
/* cli/run/caretaker.h - what `run` does for its run while the program runs.
 *
 * It keeps the run's account (trace/account.h) open, so that all processes of the run count
 * together, however short each lives; and a thread merges the rings of processes that have died,
 * so that their memory is free again. */
#ifndef TMK_CLI_RUN_CARETAKER_H
#define TMK_CLI_RUN_CARETAKER_H

#include <stdbool.h>

struct tmk_caretaker;

/* Begin, for the run in `folder`. NULL: it cannot, and the processes see to themselves. */
struct tmk_caretaker *tmk_caretaker_start(const char *folder);
/* End, and note processes that could only count themselves (refused.h). True when a process of the
 * run has recorded, whatever became of that. Takes NULL. */
bool tmk_caretaker_stop(struct tmk_caretaker *c);

#endif
