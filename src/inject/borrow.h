/* SPDX-License-Identifier: MIT */
/* inject/borrow.h - stop one thread of another process, let it do something for us, and put it back
 * as it was: registers, signal mask, and the system call that the stop broke off.
 *
 * One thread at a time; the others of the process never notice. Signals that come for it meanwhile
 * stay pending in the kernel, because all are blocked, and reach it afterwards. Should our process
 * be killed at any point of this, the thread puts itself back (return_path.h). */
#ifndef TMK_INJECT_BORROW_H
#define TMK_INJECT_BORROW_H

#include "inject/arch.h"
#include "inject/image.h"
#include "inject/return_path.h"

struct tmk_borrowed {
    pid_t pid, tid;
    uint64_t stop_ns;      /* when we asked it to stop */
    int os_error;          /* of the ptrace() that failed */
    bool is_stopped;       /* in a stop, else running or gone */
    bool is_between;       /* in the stop from which registers can be given back */
    bool is_saved;         /* all below is */
    bool is_sent;          /* into the return path, or on from there */
    bool is_restored;      /* by tmk_borrow_end(): it has left everything that we made */
    uint64_t held_signals; /* bit n-1: signal n came although it cannot be blocked */
    uint64_t signal_mask;
    struct tmk_registers saved;
    struct tmk_return_path path;
};

/* Stop `tid`. TMK_EIO: ptrace() refused (os_error); TMK_ENOENT: the thread has ended; TMK_EBUSY: it
 * has not stopped until `deadline_ns`, and will be let go when our process ends. */
int tmk_borrow_stop(struct tmk_borrowed *b, pid_t pid, pid_t tid, uint64_t deadline_ns);

/* Keep all that will be changed, and write a return path to one of `places`. TMK_EBUSY: this is not
 * the moment, because the registers are special and that `is_patient`, or no place is near enough;
 * TMK_EFULL: all places are taken. */
int tmk_borrow_save(struct tmk_borrowed *b, const struct tmk_image *image,
                    const struct tmk_return_places *places, bool is_patient);

/* Run one system call on it. 0 and its result (negative errno) in *ret. */
int tmk_borrow_syscall(struct tmk_borrowed *b, long number, const uint64_t arguments[6],
                       int64_t *ret, uint64_t deadline_ns);

/* Write to its memory, to pages that may not be written too. */
int tmk_borrow_write(struct tmk_borrowed *b, const struct tmk_image *image, uint64_t address,
                     const void *from, size_t n);

/* The stub and where it runs. */
struct tmk_stub_run {
    uint64_t code, block;
    uint64_t region, region_bytes; /* with the stub's stack at its end */
    uint64_t done;                 /* a word that becomes other than 0 */
};

/* Let it run the stub until it is done. TMK_EBUSY: not until `deadline_ns`; TMK_EIO: it crashed;
 * TMK_ENOENT: it is gone. */
int tmk_borrow_run(struct tmk_borrowed *b, const struct tmk_image *image,
                   const struct tmk_stub_run *run, uint64_t deadline_ns);

/* Stop it again, in the midst of what it does for us. */
int tmk_borrow_interrupt(struct tmk_borrowed *b, uint64_t deadline_ns);
/* Let it go on with that. */
int tmk_borrow_go_on(struct tmk_borrowed *b);

/* Stop it and call it back from the stub, so that it can run system calls for us again. TMK_EBUSY:
 * it is on its way back already. */
int tmk_borrow_recall(struct tmk_borrowed *b, const struct tmk_image *image, uint64_t deadline_ns);

/* Give everything back and let go. How long the thread was kept from its work, in ns. */
uint64_t tmk_borrow_end(struct tmk_borrowed *b, const struct tmk_image *image);

#endif
