/* SPDX-License-Identifier: MIT */
/* device/pids.h - find the process that a driver's PID means.
 *
 * Newer drivers report numbers of the asker's PID namespace, older ones the machine's, and some the
 * number in the process's own namespace. The status of a process lists its numbers in all its
 * namespaces (NSpid), from that of the /proc it is read from to its own:
 *
 *     our own /proc:      the number is there; else it may be somebody's innermost one
 *     one from outside:   it is somebody's number in our namespace; else the number is there
 *
 * A number that could mean several processes is not resolved. */
#ifndef TMK_DEVICE_PIDS_H
#define TMK_DEVICE_PIDS_H

#include "device/device.h"

/* Fill in inner_pid and name of each process, and correct pid. A process that is not found keeps
 * inner_pid 0. `is_own`: the numbers come from this very /proc, so nothing has to be guessed. */
void tmk_pids_resolve(const char *proc, bool is_own, struct tmk_device_processes *list);

#endif
