/* SPDX-License-Identifier: MIT */
/* sweep/last_words.h - what a program that failed said last: was it that memory ran out?
 *
 * For programs whose trace does not show it. Only the error that it ended with counts: the last
 * line that ends a traceback ("torch.OutOfMemoryError: CUDA out of memory. ..."), or the last line
 * of all. That a log speaks of memory somewhere above says nothing. */
#ifndef TMK_SWEEP_LAST_WORDS_H
#define TMK_SWEEP_LAST_WORDS_H

#include <stdbool.h>

/* `text` is the last lines, without a newline at their end; may be NULL. */
bool tmk_last_words_tell_oom(const char *text);
/* Was a process of it killed, by what it or who started it says? */
bool tmk_last_words_tell_kill(const char *text);

#endif
