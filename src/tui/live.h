/* SPDX-License-Identifier: MIT */
/* tui/live.h - `top` on a terminal, until somebody quits. */
#ifndef TMK_TUI_LIVE_H
#define TMK_TUI_LIVE_H

#include "base/error.h"

/* Looks every `interval_s`; `filter` (may be NULL) is what one starts with. 0; TMK_EINVAL: no
 * terminal, *err says what to do; TMK_ENOMEM. */
int tmk_live_run(double interval_s, const char *filter, struct tmk_error *err);

#endif
