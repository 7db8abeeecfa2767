/* SPDX-License-Identifier: MIT */
/* cli/leak_view.h - what grows, for people. */
#ifndef TMK_CLI_LEAK_VIEW_H
#define TMK_CLI_LEAK_VIEW_H

#include "monitor/device_leaks.h"

/* A sentence with the verdict and a table, on stdout. */
void tmk_leak_view(const struct tmk_leaks *leaks, uint64_t elapsed_ns);

#endif
