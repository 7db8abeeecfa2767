/* SPDX-License-Identifier: MIT */
/* cli/front/target.h - what commands that read share: they open RUN and choose a process of it. */
#ifndef TMK_CLI_FRONT_TARGET_H
#define TMK_CLI_FRONT_TARGET_H

#include "cli/front/command.h"
#include "model/run.h"

/* Open a run. 0, or an exit status after a message. Traces of the folder that cannot be read are
 * named and passed over. */
int tmk_target_open(const char *target, struct tmk_run **ret_run);

/* Choose the process that --rank names or, with `rank` NULL, the one with the largest peak. Says
 * which one when there was a choice. NULL after a message. */
struct tmk_process *tmk_target_pick(struct tmk_run *run, const char *rank);

/* Do both, for a command's operand and its --rank. 0, or an exit status after a message; close the
 * run in both cases. */
int tmk_target_open_one(const struct tmk_args *args, struct tmk_run **ret_run,
                        struct tmk_process **ret_p);

enum { TMK_STEP_TEXT_BYTES = 64 };
/* Writes `lead`, then "in step 3" or "before the first step", into the caller's buffer; "" for a
 * process that has no steps at all. */
const char *tmk_step_text(const struct tmk_process *p, int64_t step, const char *lead,
                          char *buffer);

/* Writes "rank 3", "pid 123" or, for an imported snapshot, "process" into the caller's buffer of 40
 * bytes. */
const char *tmk_process_label(const struct tmk_process *p, char *buffer);

/* Find the device of that name ("cpu", "cuda:1") among those that the process has used; false after
 * a message that lists them. */
bool tmk_target_device(const struct tmk_process *p, const char *name, uint16_t *ret_device);

/* Returns the peak in bytes on any device, from the history of steps. */
uint64_t tmk_process_peak(const struct tmk_process *p);

#endif
