/* SPDX-License-Identifier: MIT */
/* record/core/seal.h - whether we may still make system calls on threads of the program.
 *
 * Before the program restricts its own system calls (seccomp), we leave for good: the seal closes,
 * and nothing of ours makes a system call afterwards, at exit and in forked children included.
 * control/seccomp.h sees that coming and closes it. */
#ifndef TMK_RECORD_SEAL_H
#define TMK_RECORD_SEAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Forked children keep it, as they keep the filters. */
extern _Atomic uint32_t tmk_seal_state;

/* True from the moment at which it begins to close. */
static inline bool tmk_seal_is_closed(void)
{
    return atomic_load_explicit(&tmk_seal_state, memory_order_seq_cst) != 0;
}

/* Enter before system calls on a thread of the program, and leave after them. False: the caller
 * must not make them, and must not call tmk_seal_leave(). May be nested. */
bool tmk_seal_enter(void);
void tmk_seal_leave(void);

/* The steps of closing, for control/seccomp.c. True for the one caller that is to close the seal;
 * the others wait until that one has ended. */
bool tmk_seal_begin_closing(void);
void tmk_seal_wait_until_closed(uint64_t limit_ns);
/* Wait until no thread of the program is inside one of our system calls, or 200 ms. */
void tmk_seal_wait_for_calls(void);
void tmk_seal_end_closing(void);

/* Close the seal for a filter that was there before us, when nothing has begun yet; false opens it
 * again: somebody says that the filter does no harm (control/sandbox.h). */
void tmk_seal_refuse(bool is_refused);

#endif
