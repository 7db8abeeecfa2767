/* SPDX-License-Identifier: MIT */
/* tui/screen.h - the terminal: the only code that knows curses. It shows a grid, sending what
 * changed, and reads keys. However the process ends, but for SIGKILL, the terminal is as it was.
 *
 * There is one terminal: one screen at a time. */
#ifndef TMK_TUI_SCREEN_H
#define TMK_TUI_SCREEN_H

#include "base/error.h"
#include "tui/choice.h"
#include "tui/grid.h"

/* Whether characters beyond ASCII can be shown: the locale is UTF-8 and the terminal not an old
 * one. */
bool tmk_screen_is_utf8(void);

/* 0; TMK_EINVAL: there is no terminal, or none that is known, and *err says what to do. */
int tmk_screen_open(struct tmk_error *err);
void tmk_screen_close(void);

void tmk_screen_size(unsigned *ret_width, unsigned *ret_height);
void tmk_screen_show(const struct tmk_grid *g);
/* The next key, or NONE after so many milliseconds, or sooner. */
struct tmk_key tmk_screen_key(unsigned wait_ms);
/* The terminal is gone, or a signal asks us to end. */
bool tmk_screen_is_over(void);
/* After close: die of the signal that ended it, if one did. */
void tmk_screen_reraise(void);

#endif
