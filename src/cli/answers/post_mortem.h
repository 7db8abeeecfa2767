/* SPDX-License-Identifier: MIT */
/* cli/answers/post_mortem.h - what is said at once when memory ran out: the request that failed,
 * what the device had, and who held it. `explain` says why. */
#ifndef TMK_CLI_POST_MORTEM_H
#define TMK_CLI_POST_MORTEM_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/answers/process_answer.h"
#include "model/run.h"

/* The process of a run that a summary is about: the one with the largest peak. */
struct tmk_process *tmk_post_mortem_subject(struct tmk_run *run);

/* Print the post-mortem of that process, whose answer is *f, then those of the others. False: none
 * ran out of memory. */
bool tmk_post_mortem_print(FILE *out, struct tmk_run *run, const struct tmk_process_answer *f);

#endif
