/* SPDX-License-Identifier: MIT */
/* cli/answers/summary_line.h - the lines of a short summary: a name, and words behind it. */
#ifndef TMK_CLI_SUMMARY_LINE_H
#define TMK_CLI_SUMMARY_LINE_H

#include <stdint.h>
#include <stdio.h>

#include "passes/group.h"

enum { TMK_SUMMARY_NAME_WIDTH = 13 };

/* Print a name and words behind it; words that do not fit go on a second line. */
void tmk_summary_line(FILE *out, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Print a line of code below such a line, cut to the page. */
void tmk_summary_code(FILE *out, const char *text);

/* Print "activation 2.1 MiB (50 %), parameter ...", as many as fit; nothing where there is only an
 * unknown. */
void tmk_summary_shares(FILE *out, const char *name, enum tmk_by by,
                        const struct tmk_peak_row *rows, uint64_t n, uint64_t whole);

#endif
