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

/* Start looking after the run in `folder`. NULL: it cannot, and each process counts for itself. */
struct tmk_caretaker *tmk_caretaker_start(const char *folder);
/* Stop, and note the processes that could only count themselves (refused.h). Returns true when a
 * process of the run has recorded anything. Takes NULL. */
bool tmk_caretaker_stop(struct tmk_caretaker *c);

#endif
