/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_same.h - check that the sweep in a folder is the one that the user asks for
 * now. */
#ifndef TMK_CLI_SWEEP_SWEEP_SAME_H
#define TMK_CLI_SWEEP_SWEEP_SAME_H

#include "sweep/results.h"

/* Compare two sweeps. 0: the same command over the same grid. Else TMK_EXIT_USAGE after a message
 * that says what differs. */
int tmk_sweep_compare(const struct tmk_results *then, const struct tmk_results *now);

#endif
