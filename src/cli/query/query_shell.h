/* SPDX-License-Identifier: MIT */
/* cli/query/query_shell.h - the shell of `tidemark query RUN`: statements and dot commands, typed.
 */
#ifndef TMK_CLI_QUERY_QUERY_SHELL_H
#define TMK_CLI_QUERY_QUERY_SHELL_H

#include "cli/query/query_session.h"

/* Reads and runs until the end. The target is open. Returns the exit status. */
int tmk_query_shell(struct tmk_query *q);

#endif
