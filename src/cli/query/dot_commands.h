/* SPDX-License-Identifier: MIT */
/* cli/query/dot_commands.h - what the shell does that is not SQL: ".tables", ".mode csv".
 *
 * None starts a program or writes a file. */
#ifndef TMK_CLI_QUERY_DOT_COMMANDS_H
#define TMK_CLI_QUERY_DOT_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/query/query_session.h"

enum tmk_dot_result { TMK_DOT_DONE, TMK_DOT_FAILED, TMK_DOT_QUIT };

struct tmk_dot_command {
    const char *name;     /* ".tables" */
    const char *argument; /* how help calls it; NULL: takes none */
    const char *choices;  /* "on|off" */
    bool takes_table;
    const char *help;
    enum tmk_dot_result (*run)(struct tmk_query *q, const char *argument); /* "": none given */
};

const struct tmk_dot_command *tmk_dot_commands(size_t *ret_n);

/* Run a line that begins with a dot. What is wrong is said. */
enum tmk_dot_result tmk_dot_run(struct tmk_query *q, const char *line);

#endif
