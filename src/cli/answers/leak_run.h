/* SPDX-License-Identifier: MIT */
/* cli/answers/leak_run.h - `leak RUN|PID`: what grows step by step in a trace. */
#ifndef TMK_CLI_ANSWERS_LEAK_RUN_H
#define TMK_CLI_ANSWERS_LEAK_RUN_H

#include "cli/front/command.h"

/* The command with an operand; an exit status. `threshold_mb` < 0: none was given. */
int tmk_leak_run(const struct tmk_args *args, double threshold_mb);

#endif
