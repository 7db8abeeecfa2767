/* SPDX-License-Identifier: MIT */
/* cli/remote/remote_end.h - the other side of remote.h: `tidemark remote-end` reads a request
 * (request.h) from stdin, runs the command, and ends with its status.
 *
 * ssh starts it; nothing listens. A byte on stdin is a signal for the command, the end of stdin
 * means that whoever asked is gone, and ends the command. Only commands that are about watched
 * processes are run, so a key may be restricted to it: command="tidemark remote-end". */
#ifndef TMK_CLI_REMOTE_REMOTE_END_H
#define TMK_CLI_REMOTE_REMOTE_END_H

/* Read the request and run it by `dispatch`, which takes a command and its arguments and returns an
 * exit status. Returns the exit status. */
int tmk_remote_end(int dispatch(char **words));

#endif
