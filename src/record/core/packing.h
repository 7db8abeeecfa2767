/* SPDX-License-Identifier: MIT */
/* record/core/packing.h - what other threads tell the packer thread, and how it sleeps. */
#ifndef TMK_RECORD_PACKING_H
#define TMK_RECORD_PACKING_H

#include <stdbool.h>
#include <stdint.h>

/* Have the packer pack and sync at once, because something was written that must not be lost. What
 * is written after this call is not of an earlier moment. Does not wait. */
void tmk_packing_hurry(void);

/* Keep the packer from packing before this time (CLOCK_MONOTONIC), because records of an earlier
 * moment are being written. 0: it may pack again. */
void tmk_packing_hold(uint64_t until_ns);
bool tmk_packing_is_held(void);

/* Sleep until the control page's `stop` is set, at most so long: for the packer thread and the one
 * that takes samples. */
void tmk_packing_sleep(long ns);

#endif
