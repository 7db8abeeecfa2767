/* SPDX-License-Identifier: MIT */
/* record/core/packing.h - what other threads tell the packer thread, and how it sleeps. */
#ifndef TMK_RECORD_PACKING_H
#define TMK_RECORD_PACKING_H

#include <stdbool.h>
#include <stdint.h>

/* Something that must not be lost has been written: pack it and sync it at once. What is written
 * after this is not of an earlier moment. Does not wait. */
void tmk_packing_hurry(void);

/* Records of an earlier moment are being written: pack nothing before this time. 0: go on. */
void tmk_packing_hold(uint64_t until_ns);
bool tmk_packing_is_held(void);

/* Sleep, at most until the control page's `stop` is set: for the packer thread and the one that
 * takes samples. */
void tmk_packing_sleep(long ns);

#endif
