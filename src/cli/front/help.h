/* SPDX-License-Identifier: MIT */
/* cli/front/help.h - what the manual's forms have in common: the screen (help.c), docs/commands.md
 * (help_markdown.c) and the manual pages (help_man.c). */
#ifndef TMK_CLI_FRONT_HELP_H
#define TMK_CLI_FRONT_HELP_H

#include <stddef.h>

#include "cli/front/command.h"

/* Two lines, the first sentence of everything that says what this is. */
#define TMK_HELP_ABOUT                                                                             \
    "tidemark shows what uses GPU memory in a PyTorch job: what was live at the peak,\n"           \
    "which line allocated it, what leaks, and why it ran out."

/* The names of the groups of commands. */
extern const char *const tmk_help_groups[TMK_N_GROUPS];
/* What RUN stands for, and the exit statuses of commands that say nothing else: paragraphs, as in
 * struct tmk_command. */
extern const char *const tmk_help_run_note[];
extern const char *const tmk_help_exit_status[];

/* Write "-o, --output FILE" into `text`. */
void tmk_help_option_text(const struct tmk_option *o, char *text, size_t size);
/* Returns the meaning in "TERM\tmeaning", and TERM in `term`; NULL for any other paragraph. */
const char *tmk_help_meaning(const char *paragraph, char *term, size_t size);

#endif
