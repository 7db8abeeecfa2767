/* SPDX-License-Identifier: MIT */
/* inject/inject.h - load a library into a running process, and call one of its functions.
 *
 *     int function(const char *options, char *message, size_t message_size);
 *
 * The call runs on a helper thread of its own: an ordinary thread of the target's C library with
 * all signals blocked. It does not run on one of the program's threads, because that thread may be
 * holding the very lock that dlopen() needs. One thread of the program is borrowed only to start
 * the helper, for some hundred microseconds, at a moment when that is safe (safe_point.h). The
 * other threads keep running, so they release the locks they hold. Nothing is traced any more while
 * the library loads, and everything we mapped is unmapped in the end.
 *
 * Rejected: dlopen() on the borrowed thread (it would wait for the loader's lock together with the
 * program's main thread, and for ever for locks of its own); a raw clone() (without thread-local
 * storage neither malloc nor dlopen works there); stopping all threads during the call (a stopped
 * one may hold malloc's lock). */
#ifndef TMK_INJECT_INJECT_H
#define TMK_INJECT_INJECT_H

#include "inject/subject.h"

struct tmk_injection {
    const struct tmk_subject *subject;
    const struct tmk_asker *asker;
    const char *library; /* absolute path, as we see it */
    const char *symbol;
    const char *options;
    uint64_t timeout_ns; /* for the whole injection */
};

enum { TMK_MESSAGE_BYTES = 1024 };

struct tmk_injected {
    int result; /* what the function returned */
    char message[TMK_MESSAGE_BYTES];
    bool was_loaded;          /* the library was there already */
    bool by_memory;           /* it was copied into the target, which cannot see its file */
    pid_t borrowed;           /* the thread that was borrowed */
    unsigned n_held;          /* threads stopped, one after the other, the borrowed one included */
    uint64_t held_ns;         /* all of their stops together */
    uint64_t longest_held_ns; /* the longest of one thread */
    uint64_t total_ns;
};

/* Inject: 0 when the function was called, else TMK_E* with the reason. Check the subject first.
 * After a failure the target is as it was, unless the reason says that the library is still
 * loading; then that goes on. */
int tmk_inject(const struct tmk_injection *in, struct tmk_injected *ret, struct tmk_error *err);

/* The libraries that a process has loaded: tidemark's and others that matter. */
struct tmk_presence {
    char library[512]; /* the library it has loaded; "" */
    char ring[512];    /* the ring it records into; "" */
    bool has_python, has_torch;
};

/* Read it from the process. 0, or TMK_E* with the reason why we may not. */
int tmk_presence_read(const struct tmk_subject *subject, const struct tmk_asker *asker,
                      struct tmk_presence *ret, struct tmk_error *err);

#endif
