/* SPDX-License-Identifier: MIT */
/* cli/output/say.h - what the program says, on stderr: never among the data. */
#ifndef TMK_CLI_OUTPUT_SAY_H
#define TMK_CLI_OUTPUT_SAY_H

#include <stdio.h>

/* Exit statuses; `run` otherwise returns its program's. */
enum tmk_exit {
    TMK_EXIT_OK = 0,
    TMK_EXIT_FINDING = 1, /* or it could not be done */
    TMK_EXIT_USAGE = 2,
    TMK_EXIT_BAD_TRACE = 3,
    TMK_EXIT_NO_ANSWER = 4, /* of a server that was asked */
};

/* Print "tidemark: ...", the text in the language of people (kit/language.h) and a newline. */
void tmk_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void tmk_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Flush stdout; a full disk or a closed pipe must not look like success. `status`, or
 * TMK_EXIT_FINDING with a message. */
int tmk_close_output(FILE *out, const char *name, int status);

#endif
