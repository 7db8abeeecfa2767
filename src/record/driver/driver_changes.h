/* SPDX-License-Identifier: MIT */
/* record/driver/driver_changes.h - counts of what changes in what the process has of the driver.
 *
 * driver_table.c and the hooks of the driver's functions count; who keeps figures
 * (device_samples.c, torch/tally.c) compares counts to know whether they are still good. */
#ifndef TMK_RECORD_DRIVER_CHANGES_H
#define TMK_RECORD_DRIVER_CHANGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { TMK_DRIVER_DEVICES = 64 }; /* devices that are told apart */

/* A call that changes what the process has of the card is under way, until the scope ends:
 *
 *     TMK_IN_CALL;
 *
 * Whoever compares the driver's account with ours does so when none is (device_samples.h). */
void tmk_driver_changes_begin_call(void);
void tmk_driver_changes_end_call(const char *scope);
#define TMK_IN_CALL                                                                                \
    __attribute__((cleanup(tmk_driver_changes_end_call))) const char in_call_ =                    \
        (tmk_driver_changes_begin_call(), 0);                                                      \
    (void)in_call_

/* How many calls that change what the process has of the card have begun; *ret_n_ended: and ended.
 */
uint64_t tmk_driver_changes_n_calls(uint64_t *ret_n_ended);

/* The devices on which anything was ever held, a bit each; *ret_n_changes counts what began and
 * ended. */
uint64_t tmk_driver_changes_devices(uint64_t *ret_n_changes);
uint64_t tmk_driver_changes_now(void); /* that number alone: no system call */

/* For driver_table.c: something began or ended; something is held on a device, or nothing any more.
 */
void tmk_driver_changes_count(void);
void tmk_driver_changes_set_device(uint16_t device, bool is_held);
/* The counts are this process's: a forked child starts over. */
bool tmk_driver_changes_are_of(pid_t self);
void tmk_driver_changes_start_over(pid_t self);

#endif
