/* SPDX-License-Identifier: MIT */
/* kit/errand.h - one piece of work on a thread of its own, so that a screen or a server never
 * waits for it.
 *
 *     if (tmk_errand_is_idle(&e))
 *         tmk_errand_begin(&e, work, arg);
 *     ...
 *     if (tmk_errand_take(&e))        // once it is done
 *         use what `work` wrote to arg
 *
 * From begin until take is true, everything that `arg` leads to belongs to the thread, so no lock
 * is needed. Who waits for events sets `fd`, an eventfd, which becomes readable when take would be
 * true. A zeroed errand is idle. An errand cannot be stopped; a program that ends just leaves
 * it. */
#ifndef TMK_KIT_ERRAND_H
#define TMK_KIT_ERRAND_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct tmk_errand {
    pthread_t thread;
    bool is_begun;
    atomic_bool is_done;
    void (*work)(void *arg);
    void *arg;
    int fd; /* 0: none */
};

bool tmk_errand_is_idle(const struct tmk_errand *e);
/* Begin an errand. If no thread can be made, the work is done before this returns. */
void tmk_errand_begin(struct tmk_errand *e, void (*work)(void *arg), void *arg);
/* True once for each errand, when it is done. Never waits. */
bool tmk_errand_take(struct tmk_errand *e);

#endif
