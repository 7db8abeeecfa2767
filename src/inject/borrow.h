/* SPDX-License-Identifier: MIT */
/* inject/borrow.h - borrow one thread of another process: stop it, let it do something for us, and
 * put it back as it was, with its registers, its signal mask, and the system call that the stop
 * interrupted.
 *
 * Only one thread is borrowed at a time; the others never notice. Signals for it stay pending in
 * the kernel meanwhile, because all are blocked, and reach it afterwards. If our process is killed
 * at any point, the thread puts itself back (return_path.h). */
#ifndef TMK_INJECT_BORROW_H
#define TMK_INJECT_BORROW_H

#include "inject/arch.h"
#include "inject/image.h"
#include "inject/return_path.h"

struct tmk_borrowed {
    pid_t pid, tid;
    uint64_t stop_ns;      /* when we asked it to stop */
    int os_error;          /* errno of the ptrace() that failed */
    bool is_stopped;       /* in a stop; else it runs or has ended */
    bool is_between;       /* in a stop where its registers can be restored */
    bool is_saved;         /* the fields below are valid */
    bool is_sent;          /* sent into the return path, or on from there */
    bool is_restored;      /* tmk_borrow_end() has made it leave everything we made */
    uint64_t held_signals; /* bit n-1: signal n came although it cannot be blocked */
    uint64_t signal_mask;
    struct tmk_registers saved;
    struct tmk_return_path path;
};

/* Stop the thread `tid`. TMK_EIO: ptrace() failed (os_error). TMK_ENOENT: the thread has ended.
 * TMK_EBUSY: it has not stopped by `deadline_ns`; the kernel lets it go when our process ends. */
int tmk_borrow_stop(struct tmk_borrowed *b, pid_t pid, pid_t tid, uint64_t deadline_ns);

/* Save everything that will be changed, and write a return path to one of `places`. TMK_EBUSY: this
 * is not the moment, because the registers are special and the caller `is_patient`, or because no
 * place is near enough. TMK_EFULL: all places are taken. */
int tmk_borrow_save(struct tmk_borrowed *b, const struct tmk_image *image,
                    const struct tmk_return_places *places, bool is_patient);

/* Run one system call on the borrowed thread. 0, and the call's result (negative errno) in *ret. */
int tmk_borrow_syscall(struct tmk_borrowed *b, long number, const uint64_t arguments[6],
                       int64_t *ret, uint64_t deadline_ns);

/* Write to the process's memory, read-only pages included. */
int tmk_borrow_write(struct tmk_borrowed *b, const struct tmk_image *image, uint64_t address,
                     const void *from, size_t n);

/* The stub and where it runs. */
struct tmk_stub_run {
    uint64_t code, block;
    uint64_t region, region_bytes; /* its end is the stub's stack */
    uint64_t done;                 /* a word that becomes other than 0 */
};

/* Let the thread run the stub until `done` is set. TMK_EBUSY: `deadline_ns` came first. TMK_EIO: it
 * crashed. TMK_ENOENT: it has ended. */
int tmk_borrow_run(struct tmk_borrowed *b, const struct tmk_image *image,
                   const struct tmk_stub_run *run, uint64_t deadline_ns);

/* Stop the thread again while it works for us. */
int tmk_borrow_interrupt(struct tmk_borrowed *b, uint64_t deadline_ns);
/* Let it continue that work. */
int tmk_borrow_go_on(struct tmk_borrowed *b);

/* Stop the thread and take it out of the stub, so that it can run system calls for us again.
 * TMK_EBUSY: it is already returning to its own work. */
int tmk_borrow_recall(struct tmk_borrowed *b, const struct tmk_image *image, uint64_t deadline_ns);

/* Restore the thread and let it go. Returns how long it was kept from its work, in ns. */
uint64_t tmk_borrow_end(struct tmk_borrowed *b, const struct tmk_image *image);

#endif
