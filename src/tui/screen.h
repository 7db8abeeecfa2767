/* SPDX-License-Identifier: MIT */
/* tui/screen.h - the terminal, and the only code that knows curses. It shows a grid, sending only
 * changes, and reads keys. However the process ends, except by SIGKILL, the terminal is restored.
 *
 * There is one terminal, so only one screen may be open. */
#ifndef TMK_TUI_SCREEN_H
#define TMK_TUI_SCREEN_H

#include "base/error.h"
#include "tui/choice.h"
#include "tui/grid.h"

/* Whether characters beyond ASCII can be shown: the locale is UTF-8 and the terminal is not an old
 * one. */
bool tmk_screen_is_utf8(void);

/* Open the screen. 0, or TMK_EINVAL: there is no terminal, or an unknown one, and *err says what to
 * do. */
int tmk_screen_open(struct tmk_error *err);
void tmk_screen_close(void);

/* Run a program on the terminal while the screen is away: its words end in NULL, and `more`, which
 * may be NULL, are variables "NAME=value" that it has besides ours. Returns its exit status as a
 * shell has it, or -1: it could not be started. */
int tmk_screen_run(const char *const *words, const char *const *more);

void tmk_screen_size(unsigned *ret_width, unsigned *ret_height);
void tmk_screen_show(const struct tmk_grid *g);
/* Wait for the next key; NONE after `wait_ms`, or sooner. */
struct tmk_key tmk_screen_key(unsigned wait_ms);
/* Whether the terminal is gone, or a signal asks us to end. */
bool tmk_screen_is_over(void);
/* After close: raise the signal that ended the program, if one did. */
void tmk_screen_reraise(void);

#endif
