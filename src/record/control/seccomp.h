/* SPDX-License-Identifier: MIT */
/* record/control/seccomp.h - leave for good before the program restricts its own system calls.
 *
 * A filter that kills meets whoever makes the call, and our threads make calls that the program
 * never does. So our prctl() and syscall(), stubs in seccomp_stub.S, look for the call that
 * installs a filter or enters strict mode, and first close the seal (core/seal.h): the recording
 * ends in order, our threads end, and nothing of ours makes a system call afterwards. All other
 * calls jump on to the C library's, with the stack as it was.
 *
 * In a program that was there before us (`attach`, `import tidemark`) the import slots of modules
 * loaded by then are led here. What is not seen: later modules of such a program, and programs that
 * have the system call instruction in their own code. */
#ifndef TMK_RECORD_SECCOMP_H
#define TMK_RECORD_SECCOMP_H

#include <stdbool.h>

/* A filter is about to be installed: end the recording and our threads. Returns when they are gone,
 * or after a few seconds. Any thread; nothing happens in a vfork child, which has a filter of its
 * own. */
void tmk_seccomp_close(void);

/* Lead calls of prctl() and syscall() through our stubs, in modules that were loaded before us.
 * They stay: the stubs jump on. */
void tmk_seccomp_hook_calls(void);

/* For the stubs: close the seal if this call installs something. Returns the next prctl() or
 * syscall() behind ours, NULL: none is known yet. */
enum tmk_seccomp_call { TMK_SECCOMP_PRCTL = 0, TMK_SECCOMP_SYSCALL = 1 };
void *tmk_seccomp_before(enum tmk_seccomp_call which, const long arguments[6]);

/* For dlsym(): whether the name is one of the two; and our stub where `found` is the function that
 * the stub jumps on to, else NULL. */
bool tmk_seccomp_is_name(const char *name);
void *tmk_seccomp_stub(const char *name, void *found);

#endif
