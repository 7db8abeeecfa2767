/* SPDX-License-Identifier: MIT */
/* cli/page/page_file.h - the page of a run as one file: markup, style, program and data in one,
 * which needs no network and asks for none.
 *
 * A policy in the file (CSP) allows the program and the style of this build, by their hashes, and
 * nothing else. The data is base64 of deflated bytes, so nothing in it can be markup. What the
 * browser shows before the program runs is text, escaped. */
#ifndef TMK_CLI_PAGE_PAGE_FILE_H
#define TMK_CLI_PAGE_PAGE_FILE_H

#include <stdio.h>

#include "cli/answers/report_answer.h"

/* The most that a file has; where a run needs more, detail is halved until it fits. */
enum { TMK_PAGE_MAX_BYTES = 5 * 1000 * 1000 };

struct tmk_page_file {
    char *data; /* deflated, as base64 */
    const struct tmk_report_answer *report;
};

/* Sweep the chosen process once more and make the data. 0 or an exit status after a message; fini
 * in both cases. */
int tmk_page_file_init(struct tmk_page_file *f, struct tmk_report_answer *report);
void tmk_page_file_fini(struct tmk_page_file *f);
void tmk_page_file_write(const struct tmk_page_file *f, FILE *out);

/* Report on the run at `target` as a page in the file `path`. 0 or an exit status after a message.
 */
int tmk_page_report(const char *target, const char *path);

#endif
