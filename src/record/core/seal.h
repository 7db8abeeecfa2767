/* SPDX-License-Identifier: MIT */
/* record/core/seal.h - leave for good, before the program restricts its own system calls (seccomp).
 *
 * A filter that kills meets whoever makes the call, and our threads make calls that the program
 * never does. So our prctl() and syscall(), stubs in seccomp_stub.S, look for the call that
 * installs a filter or enters strict mode, and first close the seal: the recording ends in order,
 * our threads end, and nothing of ours makes a system call afterwards, at exit and in forked
 * children included. All other calls jump on to the C library's, with the stack as it was.
 *
 * In a program that was there before us (`attach`, `import tidemark`) the slots of modules loaded
 * by then are led here (import_slots.h). What is not seen: later modules of such a program, and
 * programs that have the system call instruction in their own code. */
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

/* Around what makes system calls on a thread of the program. False: it must not, and is not to
 * call tmk_seal_leave(). May be nested. */
bool tmk_seal_enter(void);
void tmk_seal_leave(void);

/* A filter is about to be installed: end the recording and our threads. Returns when they are gone,
 * or after a few seconds. Any thread; nothing happens in a vfork child, which has a filter of its
 * own. */
void tmk_seal_close(void);

/* The same for a filter that was there before us: nothing has begun yet. False: it does no harm,
 * somebody says (sandbox.h). */
void tmk_seal_refuse(bool is_refused);

/* For the stubs: close the seal if this call installs something. Returns the next prctl() or
 * syscall() behind ours, NULL: none is known yet. */
enum tmk_seal_call { TMK_SEAL_PRCTL = 0, TMK_SEAL_SYSCALL = 1 };
void *tmk_seal_before(enum tmk_seal_call which, const long arguments[6]);

/* For dlsym(): whether it is one of the two; and our stub where `found` is what that jumps on to,
 * else NULL. */
bool tmk_seal_is_name(const char *name);
void *tmk_seal_stub(const char *name, void *found);
/* What that jumps on to; NULL: not known. */
void *tmk_seal_behind(const char *name);

#endif
