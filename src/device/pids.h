/* SPDX-License-Identifier: MIT */
/* device/pids.h - whose a PID of the driver is.
 *
 * Drivers give numbers of the asker's PID namespace (newer ones), of the machine's (older ones), or
 * what the process calls itself. So a number is looked for in our /proc; if it is not there, it may
 * be what one process, and one only, has as the innermost number in its status (NSpid). */
#ifndef TMK_DEVICE_PIDS_H
#define TMK_DEVICE_PIDS_H

#include "device/device.h"

/* Fill in inner_pid and name, and put right pid, of each. What is nowhere keeps inner_pid 0. */
void tmk_pids_resolve(const char *proc, struct tmk_device_processes *list);

#endif
