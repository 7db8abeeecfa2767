/* SPDX-License-Identifier: MIT */
/* device/pids.h - whose a PID of the driver is.
 *
 * Newer drivers give numbers of the asker's PID namespace, older ones the machine's, some what the
 * process calls itself. The status of a process has its numbers in all namespaces it is in (NSpid),
 * from that of the /proc it is read from to its own:
 *
 *     our own /proc:      the number is there; else it may be somebody's innermost one
 *     one from outside:   it is somebody's number in our namespace; else the number is there
 *
 * Where several could be meant, nobody is. */
#ifndef TMK_DEVICE_PIDS_H
#define TMK_DEVICE_PIDS_H

#include "device/device.h"

/* Fill in inner_pid and name, and put right pid, of each. What is nowhere keeps inner_pid 0.
 * `is_own`: the numbers were read in this very /proc, so there is nothing to guess. */
void tmk_pids_resolve(const char *proc, bool is_own, struct tmk_device_processes *list);

#endif
