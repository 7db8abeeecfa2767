/* SPDX-License-Identifier: MIT */
/* record/core/seal.h - whether we may still make system calls on threads of the program.
 *
 * Before the program restricts its own system calls (seccomp), we leave for good: the seal closes,
 * and after that we make no system call at all, neither at exit nor in forked children.
 * control/seccomp.h detects the moment and closes the seal. */
#ifndef TMK_RECORD_SEAL_H
#define TMK_RECORD_SEAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Forked children inherit it, as they inherit the filters. */
extern _Atomic uint32_t tmk_seal_state;

/* True from the moment at which it begins to close. */
static inline bool tmk_seal_is_closed(void)
{
    return atomic_load_explicit(&tmk_seal_state, memory_order_seq_cst) != 0;
}

/* True when it has closed, for good: nobody is left who may make a system call. */
bool tmk_seal_has_closed(void);

/* Enter before making system calls on a thread of the program, and leave afterwards. False: the
 * caller must not make them and must not leave. May be nested. */
bool tmk_seal_enter(void);
void tmk_seal_leave(void);

/* The steps of closing, for control/seccomp.c. begin() is true for the one caller that is to close
 * the seal; the others wait until it has. */
bool tmk_seal_begin_closing(void);
void tmk_seal_wait_until_closed(uint64_t limit_ns);
/* Wait until no thread of the program is inside one of our system calls, at most 200 ms. */
void tmk_seal_wait_for_calls(void);
void tmk_seal_end_closing(void);

/* Close the seal because of a filter that was there before us, when nothing has begun yet. False
 * opens it again: somebody says that the filter does no harm (control/sandbox.h). */
void tmk_seal_refuse(bool is_refused);

#endif
