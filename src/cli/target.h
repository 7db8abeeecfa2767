/* SPDX-License-Identifier: MIT */
/* cli/target.h - what commands that read have in common: open RUN, choose a process of it. */
#ifndef TMK_CLI_TARGET_H
#define TMK_CLI_TARGET_H

#include "cli/command.h"
#include "kit/json.h"
#include "model/run.h"

/* Open, or say why not and return an exit status (*ret_run untouched). Traces of the folder that
 * cannot be read are said and passed over. */
int tmk_target_open(const char *target, struct tmk_run **ret_run);

/* The process that --rank names or, with `rank` NULL, the one with the largest peak. Says which
 * when there was a choice. NULL after a message. */
struct tmk_process *tmk_target_pick(struct tmk_run *run, const char *rank);

/* The key "pid": null where it is not known, as of an imported snapshot. */
void tmk_process_json_pid(struct tmk_json *j, const struct tmk_process *p);

/* "rank 3" or "pid 123" into the caller's buffer of 40 bytes. */
const char *tmk_process_label(const struct tmk_process *p, char *buffer);

/* The device of that name ("cpu", "cuda:1") that the process has used; false after a message that
 * lists those it has. */
bool tmk_target_device(const struct tmk_process *p, const char *name, uint16_t *ret_device);

/* Peak bytes from the per-step history, on any device. */
uint64_t tmk_process_peak(const struct tmk_process *p);

#endif
