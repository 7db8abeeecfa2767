/* SPDX-License-Identifier: MIT */
/* cli/live/leaks_text.h - what grows, for people. */
#ifndef TMK_CLI_LIVE_LEAKS_TEXT_H
#define TMK_CLI_LIVE_LEAKS_TEXT_H

#include "monitor/device_leaks.h"

/* A sentence with the verdict and a table, on stdout. */
void tmk_leaks_text(const struct tmk_leaks *leaks, uint64_t elapsed_ns);

#endif
