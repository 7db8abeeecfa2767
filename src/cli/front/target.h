/* SPDX-License-Identifier: MIT */
/* cli/front/target.h - what commands that read have in common: open RUN, choose a process of it. */
#ifndef TMK_CLI_FRONT_TARGET_H
#define TMK_CLI_FRONT_TARGET_H

#include "cli/front/command.h"
#include "model/run.h"

/* Open, or say why not and return an exit status (*ret_run untouched). Traces of the folder that
 * cannot be read are said and passed over. */
int tmk_target_open(const char *target, struct tmk_run **ret_run);

/* The process that --rank names or, with `rank` NULL, the one with the largest peak. Says which
 * when there was a choice. NULL after a message. */
struct tmk_process *tmk_target_pick(struct tmk_run *run, const char *rank);

/* Both, of a command's operand and its --rank. 0, or an exit status after a message; the run is to
 * be closed in both cases. */
int tmk_target_open_one(const struct tmk_args *args, struct tmk_run **ret_run,
                        struct tmk_process **ret_p);

enum { TMK_STEP_TEXT_BYTES = 64 };
/* `lead`, then "in step 3" or "before the first step", into the caller's buffer; of a process that
 * has no steps at all there is nothing to say: "". */
const char *tmk_step_text(const struct tmk_process *p, int64_t step, const char *lead,
                          char *buffer);

/* "rank 3", "pid 123" or, of an imported snapshot, "process", into the caller's buffer of 40
 * bytes. */
const char *tmk_process_label(const struct tmk_process *p, char *buffer);

/* The device of that name ("cpu", "cuda:1") that the process has used; false after a message that
 * lists those it has. */
bool tmk_target_device(const struct tmk_process *p, const char *name, uint16_t *ret_device);

/* Peak bytes from the per-step history, on any device. */
uint64_t tmk_process_peak(const struct tmk_process *p);

#endif
