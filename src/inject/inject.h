/* SPDX-License-Identifier: MIT */
/* inject/inject.h - load a library into a process that already runs, and call a function of it.
 *
 *     int function(const char *options, char *message, size_t message_size);
 *
 * The call is made on a thread of its own, an ordinary one of the target's C library with all
 * signals blocked, and not on one of the program's: that one would be inside of something, perhaps
 * with the very lock that dlopen() needs. One thread of the program is borrowed only to start it,
 * for some hundred microseconds, at a moment when that is safe (safe_point.h); the others run on
 * all the while, so what they hold they also release. Nothing is traced any more while the library
 * loads, and what we mapped is unmapped in the end.
 *
 * Rejected: dlopen() on the borrowed thread (waits for the loader's lock with the program's main
 * thread, and for its own locks for ever); a raw clone() (no thread-local storage, so neither
 * malloc nor dlopen work there); stopping all threads for the time of the call (a stopped one may
 * hold the lock of malloc). */
#ifndef TMK_INJECT_INJECT_H
#define TMK_INJECT_INJECT_H

#include "inject/subject.h"

struct tmk_injection {
    const struct tmk_subject *subject;
    const struct tmk_asker *asker;
    const char *library; /* absolute path, as we see it */
    const char *symbol;
    const char *options;
    uint64_t timeout_ns; /* for all of it */
};

enum { TMK_MESSAGE_BYTES = 1024 };

struct tmk_injected {
    int result; /* what the function returned */
    char message[TMK_MESSAGE_BYTES];
    bool was_loaded;          /* the library was there already */
    bool by_memory;           /* it was put into the target, whose files do not have it */
    pid_t borrowed;           /* the thread that was borrowed */
    unsigned n_held;          /* threads stopped, one after the other, the borrowed one included */
    uint64_t held_ns;         /* all of their stops together */
    uint64_t longest_held_ns; /* the longest of one thread */
    uint64_t total_ns;
};

/* 0 when the function was called, else the reason; check the subject first. On failure the target
 * is as it was; only when the reason says that the library is still loading, that goes on. */
int tmk_inject(const struct tmk_injection *in, struct tmk_injected *ret, struct tmk_error *err);

/* What the process has of ours. */
struct tmk_presence {
    char library[512]; /* the library it has loaded; "" */
    char ring[512];    /* the ring it records into; "" */
    bool has_python, has_torch;
};

/* Look; 0 or the reason why we may not. */
int tmk_presence_read(const struct tmk_subject *subject, const struct tmk_asker *asker,
                      struct tmk_presence *ret, struct tmk_error *err);

#endif
