/* SPDX-License-Identifier: MIT */
/* sweep/last_words.h - whether the last output of a failed program says that it ran out of memory.
 *
 * This is for programs with a trace that does not show it. Only the error that the program ended
 * with counts: the last line that ends a traceback ("torch.OutOfMemoryError: CUDA out of memory.
 * ..."), or the last line of all. Mentions of memory further up say nothing. */
#ifndef TMK_SWEEP_LAST_WORDS_H
#define TMK_SWEEP_LAST_WORDS_H

#include <stdbool.h>

/* `text` is the last lines, without a newline at the end; may be NULL. */
bool tmk_last_words_tell_oom(const char *text);
/* Whether the program, or the one that started it, says that one of its processes was killed. */
bool tmk_last_words_tell_kill(const char *text);

#endif
