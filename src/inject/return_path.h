/* SPDX-License-Identifier: MIT */
/* inject/return_path.h - how a borrowed thread restores itself when its tracer is gone.
 *
 * Our process may be killed at any moment. The kernel then lets every stopped thread continue with
 * the registers that it has at that moment. So we never give a thread registers from which it
 * cannot return by itself:
 *
 *   1  the return path (arch.h) is written into bytes of the target's code pages that nothing uses,
 *      with the thread's registers and signal mask in it. The thread has not noticed yet
 *   2  one PTRACE_SETREGSET sends it into the return path; then its signals are blocked
 *   3  a second PTRACE_SETREGSET sends it to the system call in the return path. After that call it
 *      returns by itself, unless we are still there: then we stop it and send it to the next call
 *   4  a third one sends it into the stub, which ends in the return path, too
 *   5  we put its registers back: the vector registers, then its own signal mask as in step 2, and
 *      last the general registers
 *
 * The unused bytes lie between the end of a library's code and the end of the page
 * (tmk_module_tail). After step 5 they are put back as they were. If we are killed they stay, and
 * such a place can be used again once its thread is seen to be elsewhere.
 *
 * Rejected: the thread's own stack (a runtime may have stacks of a few KiB with other data below);
 * a signal frame and rt_sigreturn() (it makes the kernel forget what is left of a sleep, and needs
 * writable memory); a mapping of our own (making one is the first thing that a thread does for
 * us). */
#ifndef TMK_INJECT_RETURN_PATH_H
#define TMK_INJECT_RETURN_PATH_H

#include "inject/arch.h"
#include "inject/image.h"

enum { TMK_MAX_PLACES = 64 };

/* Places for a return path. */
struct tmk_return_places {
    unsigned n;
    uint64_t at[TMK_MAX_PLACES];
    bool is_taken[TMK_MAX_PLACES]; /* by a thread that was left alone in it */
    uint64_t scratch;              /* unused bytes that can be written; 0: none */
};

/* A return path that was written. */
struct tmk_return_path {
    uint64_t at; /* 0: none */
    uint8_t before[TMK_RETURN_MAX_BYTES];
};

/* Find places behind the `n` modules that begin at `heads`. They must stay loaded for good; each
 * but the first may be NULL. 0, or TMK_EINVAL: there is no place. */
int tmk_return_places_find(const struct tmk_image *image, const struct tmk_mapping *const *heads,
                           unsigned n, struct tmk_return_places *ret);

/* Whether the thread that stopped with these registers could still enter the return path at
 * `at`. */
bool tmk_return_is_needed(const struct tmk_image *image, uint64_t at,
                          const struct user_regs_struct *g);

/* Whether the thread with these registers is in the return path at `at`, or in its stub. */
bool tmk_return_has(const struct tmk_image *image, uint64_t at, const struct user_regs_struct *g);

#endif
