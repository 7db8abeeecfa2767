/* SPDX-License-Identifier: MIT */
/* sweep/words.h - the command of a configuration: {NAME} in its words is the parameter's value.
 *
 * "{{" is a brace. A brace that is not followed by a name and a closing brace stays as it is, so
 * JSON needs no escapes: '{"lr": {lr}}'. {repeat} is the repeat's number, from 0. */
#ifndef TMK_SWEEP_WORDS_H
#define TMK_SWEEP_WORDS_H

#include "sweep/results.h"

/* Check that every {NAME} of the word is a parameter. 0, or TMK_EINVAL with what to write. */
int tmk_word_check(const char *word, const struct tmk_results *r, struct tmk_error *err);
/* Fill in the cell's values; the result is malloc'ed, NULL: no memory. */
char *tmk_word_fill(const char *word, const struct tmk_results *r, const struct tmk_cell *c);

#endif
