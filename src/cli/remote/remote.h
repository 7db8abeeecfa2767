/* SPDX-License-Identifier: MIT */
/* cli/remote/remote.h - commands on a process of another machine: `tidemark peak HOST:PID`.
 *
 * A command that has TMK_REMOTE_OPTION among its options, and targets in its table entry, need not
 * know: where its target is an endpoint (endpoint.h), the same command with the PID runs over
 * there, by the user's own ssh (ssh.h) and the tidemark that is installed there (remote_end.h). Its
 * stdout, stderr and exit status are ours; ^C and `-` (stdin) are its own. A second ^C ends it at
 * once. A file that --output names is written here. */
#ifndef TMK_CLI_REMOTE_REMOTE_H
#define TMK_CLI_REMOTE_REMOTE_H

#include <stdbool.h>

#include "cli/front/command.h"
#include "kit/arena.h"

#define TMK_REMOTE_OPTION                                                                          \
    {                                                                                              \
        "remote-path", 0, "PROGRAM", NULL, "the tidemark command on HOST (tidemark)"               \
    }

/* Run the command on the machine that its target names. False: its target is here, and nothing was
 * done; else *ret_status is the exit status. */
bool tmk_remote_run(const struct tmk_args *args, int *ret_status);

/* Write "NAME=VALUE" of what the other side should know of our terminal; in the arena, ends in
 * NULL. */
const char **tmk_remote_settings(struct tmk_arena *arena, const char *host, bool has_screen);

#endif
