/* SPDX-License-Identifier: MIT */
/* inject/safe_point.h - may this thread be made to call pthread_create() now?
 *
 * That function allocates, and takes locks of the loader's and of its own. Should the thread itself
 * be inside of malloc, of the loader, of pthread_create or of fork, it would wait for itself for
 * ever, or find a list half changed. Locks that *other* threads hold do not matter: those run on.
 *
 * So a thread is safe when neither its place in the code nor, where it is in the C library, a
 * return address near on its stack lies in one of those parts. A signal handler is looked through:
 * what it has interrupted must be safe as well. Old return addresses that linger on a stack make a
 * safe thread look unsafe, never the other way; one looks again, or at another thread. Unwinding by
 * the library's tables would be exact; it was left out, because a wait for something that only
 * others can bring about (poll, sleep, a socket) is known to be safe by the call alone, and a
 * thread that is running will soon be elsewhere. */
#ifndef TMK_INJECT_SAFE_POINT_H
#define TMK_INJECT_SAFE_POINT_H

#include "inject/image.h"

enum { TMK_MAX_UNSAFE = 48, TMK_MAX_WATCHED = 16 };

struct tmk_safety {
    const struct tmk_image *image;
    struct tmk_range unsafe[TMK_MAX_UNSAFE]; /* code that may hold a lock we need */
    unsigned n_unsafe;
    struct tmk_range watched[TMK_MAX_WATCHED]; /* code which that code calls: look at the stack */
    unsigned n_watched;
    uint64_t sigreturn; /* to which signal handlers return; 0: unknown */
    bool own_allocator; /* malloc is not only the C library's: it may wait in any call */
};

/* Where a thread is. */
struct tmk_thread_place {
    uint64_t pc, sp;
    long call;         /* the system call it waits in; -1: in none */
    uint64_t argument; /* the first of it */
};

/* Learn where the unsafe parts are. `libc`, `threads` (the module with pthread_create) and `loader`
 * (a mapping of ld.so; may be NULL) are the target's. */
int tmk_safety_init(struct tmk_safety *ret, const struct tmk_image *image,
                    const struct tmk_image_module *libc, const struct tmk_image_module *threads,
                    const struct tmk_mapping *loader, struct tmk_error *err);

bool tmk_safety_of(const struct tmk_safety *s, const struct tmk_thread_place *m);

/* The moment of a thread that waits in the kernel, from outside. False: it runs (or is gone). */
bool tmk_thread_place_read(pid_t pid, pid_t tid, struct tmk_thread_place *ret);

/* Does a stop leave no trace in this call: will the kernel, or we, start it again? */
bool tmk_call_restarts(long call);

#endif
