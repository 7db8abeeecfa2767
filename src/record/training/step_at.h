/* SPDX-License-Identifier: MIT */
/* record/training/step_at.h - steps that begin at a line of the Python program, `--step-at`.
 *
 * From CPython 3.12 on sys.monitoring tells when a line is reached. It is switched on for the one
 * code object that has the line; all other code runs as before. Older versions can only trace every
 * line of a thread, so there it is not done, and a mark says so. */
#ifndef TMK_RECORD_STEP_AT_H
#define TMK_RECORD_STEP_AT_H

#include <stdbool.h>

#include "record/python/python.h"

/* Begin, if the settings name a line and it has not begun in this recording. Needs the
 * interpreter's lock. */
void tmk_step_at_arm(const struct tmk_python *py);
void tmk_step_at_disarm(const struct tmk_python *py);
/* True when there is something to disarm. Any thread. */
bool tmk_step_at_is_armed(void);

extern const char tmk_step_at_source[]; /* the text of step_at.py */

#endif
