/* SPDX-License-Identifier: MIT */
/* cli/remote/request.h - what is sent to the tidemark of another machine, on its stdin: a command
 * and its arguments, as bytes.
 *
 *     tidemark-remote PROTOCOL VERSION HOST N_TEXT N_INPUT\n
 *     N_TEXT bytes:  settings NAME=VALUE, an empty text, the file's name, the command and its
 *                    arguments; a zero byte behind each
 *     N_INPUT bytes: what the command reads from its stdin
 *     then a byte for each signal that the command gets, while it runs
 *
 * No shell ever sees an argument, so nothing needs quoting, whatever the login shell there is, and
 * code does not appear in the list of processes. The first three words may never change: they are
 * how versions that do not understand each other say so. */
#ifndef TMK_CLI_REMOTE_REQUEST_H
#define TMK_CLI_REMOTE_REQUEST_H

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "kit/arena.h"

enum {
    TMK_REQUEST_PROTOCOL = 1,
    TMK_REQUEST_LINE_MAX = 512, /* the first line, with its end */
    TMK_REQUEST_TEXT_MAX = 4 << 20,
    TMK_REQUEST_INPUT_MAX = 4 << 20,
    TMK_REQUEST_WORDS_MAX = 4096, /* settings and arguments together */
};

struct tmk_request {
    const char *host;      /* this machine, as the one that asks calls it */
    const char **settings; /* NAME=VALUE; ends in NULL */
    const char *file;      /* the command writes this file, which goes to stdout; NULL: none */
    const char **words;    /* the command and its arguments; ends in NULL */
    const char *input;
    size_t n_input;
};

/* The first line, taken apart. */
struct tmk_request_line {
    size_t protocol;
    char version[32];
    char host[256];
    size_t n_text, n_input;
};

/* Write the request, without signals. */
void tmk_request_write(FILE *out, const struct tmk_request *request);

/* Take the first line apart, without its end. 0, or TMK_EVERSION or TMK_EFORMAT with the reason. */
int tmk_request_parse_line(const char *line, struct tmk_request_line *ret, struct tmk_error *err);

/* Take the text of a request apart: settings, file and words. They lie in `text`, the lists in the
 * arena. 0, TMK_ENOMEM or TMK_EFORMAT. */
int tmk_request_parse_text(char *text, size_t n, struct tmk_arena *arena, struct tmk_request *ret,
                           struct tmk_error *err);

#endif
