/* SPDX-License-Identifier: MIT */
/* cli/front/completion.h - the scripts for shells, made from the table of commands. */
#ifndef TMK_CLI_FRONT_COMPLETION_H
#define TMK_CLI_FRONT_COMPLETION_H

#include <stdio.h>

struct tmk_completion_shell {
    const char *shell;
    const char *file; /* the name that the shell looks for in its folder of completions */
    void (*write)(FILE *out);
};

/* All shells; ends in one without a name. */
extern const struct tmk_completion_shell tmk_completion_shells[];

#endif
