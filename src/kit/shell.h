/* SPDX-License-Identifier: MIT */
/* kit/shell.h - quoting for words of commands that people copy into a shell. */
#ifndef TMK_KIT_SHELL_H
#define TMK_KIT_SHELL_H

#include "kit/arena.h"

/* Quotes `word` for a shell: it stays as it is where nothing in it means anything to a shell, else
 * it gets single quotes. The result is in the arena; NULL without memory. */
const char *tmk_shell_word(struct tmk_arena *a, const char *word);

#endif
