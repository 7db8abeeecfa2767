/* SPDX-License-Identifier: MIT */
/* record/driver/driver_changes.h - count the changes of the process's driver memory.
 *
 * driver_table.c and the hooks of the driver's functions count. Whoever keeps figures
 * (device_samples.c, torch/tally.c) compares counts to know whether the figures are still good. */
#ifndef TMK_RECORD_DRIVER_CHANGES_H
#define TMK_RECORD_DRIVER_CHANGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { TMK_DRIVER_DEVICES = 64 }; /* devices that are told apart */

/* Say that a call that changes the process's memory on the GPU is under way, until the scope ends:
 *
 *     TMK_IN_CALL;
 *
 * Whoever compares the driver's figures with ours does so when no call is under way
 * (device_samples.h). */
void tmk_driver_changes_begin_call(void);
void tmk_driver_changes_end_call(const char *scope);
#define TMK_IN_CALL                                                                                \
    __attribute__((cleanup(tmk_driver_changes_end_call))) const char in_call_ =                    \
        (tmk_driver_changes_begin_call(), 0);                                                      \
    (void)in_call_

/* How many such calls have begun; *ret_n_ended: and how many have ended. */
uint64_t tmk_driver_changes_n_calls(uint64_t *ret_n_ended);

/* The devices on which the process ever had memory, one bit each; *ret_n_changes counts segments
 * that began or ended. */
uint64_t tmk_driver_changes_devices(uint64_t *ret_n_changes);
uint64_t tmk_driver_changes_now(void); /* that count alone, without a system call */

/* Called by driver_table.c: count a change; set whether the process has memory on a device. */
void tmk_driver_changes_count(void);
void tmk_driver_changes_set_device(uint16_t device, bool is_held);
/* True while the counts are this process's: a forked child starts over. */
bool tmk_driver_changes_are_of(pid_t self);
void tmk_driver_changes_start_over(pid_t self);

#endif
