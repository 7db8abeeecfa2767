/* SPDX-License-Identifier: MIT */
/* cli/front/usage.h - what is said to somebody who typed a command line that is none: what is
 * wrong, what is allowed or was probably meant, and how to see the manual. */
#ifndef TMK_CLI_FRONT_USAGE_H
#define TMK_CLI_FRONT_USAGE_H

#include "cli/front/command.h"

/* Say how to see the manual of the command; NULL: of all. Returns TMK_EXIT_USAGE. */
int tmk_usage_see(const struct tmk_command *c);

/* The option's name is not in the command's table. Returns TMK_EXIT_USAGE after saying so, like
 * those that follow. */
int tmk_usage_unknown_option(const struct tmk_command *c, const char *argument);
/* The option wants a value that it did not get (NULL), or another one. */
int tmk_usage_wrong_value(const struct tmk_command *c, const struct tmk_option *o,
                          const char *value);
/* Too few operands, or too many: the first one that has no place. */
int tmk_usage_missing_operand(const struct tmk_command *c, unsigned n_given);
int tmk_usage_extra_operand(const struct tmk_command *c, const char *operand);

/* argv[0] is no command. It may be a run, a PID, a file or a program: the command that was probably
 * meant is named in full. */
int tmk_usage_unknown_command(char **argv);
/* The same behind `tidemark help`. */
int tmk_usage_no_manual(const char *name);

/* Returns how to run a file that execvp() refuses and that looks like a Python script, as
 * "python3 train.py"; NULL for all others. The caller's, for free(). */
char *tmk_usage_script(const char *program);

#endif
