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

/* Options that every command has, or the program without one. */
#define TMK_HELP_HELP "show this manual"
#define TMK_HELP_LANG "zh, en or the name of a locale (TIDEMARK_LANG, else LANG)"
#define TMK_HELP_COLOR "always, never or auto (a terminal, without NO_COLOR)"
#define TMK_HELP_NO_PAGER "do not send long output through PAGER"
#define TMK_HELP_VERSION "print the version and what it was built with (--json: as JSON)"

/* The date on manual pages: when their texts were last reviewed. */
#define TMK_HELP_DATE "2026-11-19"

/* The names of the groups of commands. */
extern const char *const tmk_help_groups[TMK_N_GROUPS];
/* What RUN stands for, and the exit statuses of commands that say nothing else: paragraphs, as in
 * struct tmk_command. */
extern const char *const tmk_help_run_note[];
extern const char *const tmk_help_exit_status[];
/* The variables that people set. */
extern const char *const tmk_help_environment[];

/* Write "-o, --output FILE" into `text`. */
void tmk_help_option_text(const struct tmk_option *o, char *text, size_t size);
/* Returns the meaning in "TERM\tmeaning", and TERM in `term`; NULL for any other paragraph. */
const char *tmk_help_meaning(const char *paragraph, char *term, size_t size);

#endif
