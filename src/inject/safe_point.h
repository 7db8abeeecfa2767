/* SPDX-License-Identifier: MIT */
/* inject/safe_point.h - whether a thread may be made to call pthread_create() now.
 *
 * pthread_create() allocates, and takes locks of the loader and of its own. If the thread itself is
 * inside malloc, the loader, pthread_create or fork, it would wait for itself for ever, or find a
 * list half changed. Locks that *other* threads hold do not matter, because those threads keep
 * running.
 *
 * So a thread is safe if its program counter lies in none of those parts and, while it is in the C
 * library, no return address near the top of its stack does. If a signal handler runs, the code
 * that it interrupted must be safe as well. Old return addresses left on a stack can make a safe
 * thread look unsafe, never the other way; the caller tries again, or another thread. Unwinding by
 * the library's tables would be exact. It was left out because a wait that only others can end
 * (poll, sleep, a socket) is known to be safe by the call alone, and a running thread will soon be
 * elsewhere. */
#ifndef TMK_INJECT_SAFE_POINT_H
#define TMK_INJECT_SAFE_POINT_H

#include "inject/image.h"

enum { TMK_MAX_UNSAFE = 48, TMK_MAX_WATCHED = 16 };

struct tmk_safety {
    const struct tmk_image *image;
    struct tmk_range unsafe[TMK_MAX_UNSAFE]; /* code that may hold a lock we need */
    unsigned n_unsafe;
    struct tmk_range watched[TMK_MAX_WATCHED]; /* code that unsafe code calls: look at the stack */
    unsigned n_watched;
    uint64_t sigreturn; /* the code to which signal handlers return; 0: unknown */
    bool own_allocator; /* some malloc is not the C library's: it may wait in any call */
};

/* Where a thread is. */
struct tmk_thread_place {
    uint64_t pc, sp;
    long call;         /* the system call it waits in; -1: none */
    uint64_t argument; /* its first argument */
};

/* Find the unsafe parts. `libc`, `threads` (the module with pthread_create) and `loader` (a mapping
 * of ld.so; may be NULL) are the target's. */
int tmk_safety_init(struct tmk_safety *ret, const struct tmk_image *image,
                    const struct tmk_image_module *libc, const struct tmk_image_module *threads,
                    const struct tmk_mapping *loader, struct tmk_error *err);

bool tmk_safety_of(const struct tmk_safety *s, const struct tmk_thread_place *m);

/* Read where a thread waits in the kernel, from outside. False: it runs, or has ended. */
bool tmk_thread_place_read(pid_t pid, pid_t tid, struct tmk_thread_place *ret);

/* Whether a stop leaves no trace in this call, because the kernel, or we, start it again. */
bool tmk_call_restarts(long call);

#endif
