/* SPDX-License-Identifier: MIT */
/* tui/live.h - `top` on a terminal, until the user quits. */
#ifndef TMK_TUI_LIVE_H
#define TMK_TUI_LIVE_H

#include "base/error.h"

/* Look every `interval_s`, starting with `filter` (may be NULL). 0; TMK_EINVAL: there is no
 * terminal, and *err says what to do; TMK_ENOMEM. */
int tmk_live_run(double interval_s, const char *filter, struct tmk_error *err);

#endif
