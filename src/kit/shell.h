/* SPDX-License-Identifier: MIT */
/* kit/shell.h - words of commands that people copy into a shell. */
#ifndef TMK_KIT_SHELL_H
#define TMK_KIT_SHELL_H

#include "kit/arena.h"

/* `word` as a shell has to be given it: as it is where nothing in it means anything to a shell,
 * else in single quotes. In the arena; NULL without memory. */
const char *tmk_shell_word(struct tmk_arena *a, const char *word);

#endif
