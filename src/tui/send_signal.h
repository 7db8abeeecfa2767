/* SPDX-License-Identifier: MIT */
/* tui/send_signal.h - send a signal to the process that the user has seen, and to no other.
 *
 * A PID may be given to another process at any moment. So a process is named by its PID and by when
 * it started, and the signal goes through a pidfd, which stays with one process: open it, see when
 * that process started, send. Kernels before 5.3 have no pidfd; there the two steps follow each
 * other at once. */
#ifndef TMK_TUI_SEND_SIGNAL_H
#define TMK_TUI_SEND_SIGNAL_H

#include <stdint.h>

#include "base/error.h"

/* Send `number` to the process that started at `start_ticks` (kit/kernel_files.h). 0; TMK_EPROCESS:
 * it has ended, or its PID is another's now; TMK_EIO: not allowed. */
int tmk_send_signal(uint32_t pid, uint64_t start_ticks, int number, struct tmk_error *err);

#endif
