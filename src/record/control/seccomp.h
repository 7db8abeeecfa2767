/* SPDX-License-Identifier: MIT */
/* record/control/seccomp.h - leave for good before the program restricts its own system calls.
 *
 * A seccomp filter that kills hits whoever makes the call, and our threads make calls that the
 * program never makes. So our prctl() and syscall(), stubs in seccomp_stub.S, look for the call
 * that installs a filter or enters strict mode, and first close the seal (core/seal.h): the
 * recording ends in order, our threads end, and our code makes no system call afterwards. All other
 * calls jump on to the C library's function, with the stack as it was.
 *
 * In a program that was there before us (`attach`, `import tidemark`) the import slots of modules
 * loaded by then lead to the stubs. Not seen: modules that such a program loads later, and programs
 * that have the system call instruction in their own code. */
#ifndef TMK_RECORD_SECCOMP_H
#define TMK_RECORD_SECCOMP_H

#include <stdbool.h>

/* End the recording and our threads, because a filter is about to be installed. Returns when they
 * are gone, or after a few seconds. Any thread; does nothing in a vfork child, which has its own
 * filters. */
void tmk_seccomp_close(void);

/* Lead calls of prctl() and syscall() through our stubs, in modules that were loaded before us. The
 * stubs stay: they jump on. */
void tmk_seccomp_hook_calls(void);

/* Called by the stubs: close the seal if this call installs a filter. Returns the next prctl() or
 * syscall() behind ours; NULL: none is known yet. */
enum tmk_seccomp_call { TMK_SECCOMP_PRCTL = 0, TMK_SECCOMP_SYSCALL = 1 };
void *tmk_seccomp_before(enum tmk_seccomp_call which, const long arguments[6]);

/* Called by our dlsym(). is_name() is true for the names of the two functions. stub() returns our
 * stub for a name if `found` is the function that the stub jumps on to, else NULL. */
bool tmk_seccomp_is_name(const char *name);
void *tmk_seccomp_stub(const char *name, void *found);

#endif
