/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_runner.h - run the configurations of a sweep, as many at once as the plan says,
 * each under a keeper. Each is measured when it has ended and written to the journal before the
 * next begins. */
#ifndef TMK_CLI_SWEEP_SWEEP_RUNNER_H
#define TMK_CLI_SWEEP_SWEEP_RUNNER_H

#include "cli/sweep/sweep_plan.h"

/* Run the sweep. 0: nothing is pending any more. Else an exit status after a message: 128 + signal
 * if it was interrupted, 126 or 127 if the command cannot be run. */
int tmk_sweep_run(struct tmk_sweep_plan *p);

/* Print the configurations in the order in which they would run. */
void tmk_sweep_list(const struct tmk_sweep_plan *p);

#endif
