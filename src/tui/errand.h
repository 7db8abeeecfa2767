/* SPDX-License-Identifier: MIT */
/* tui/errand.h - one piece of work on a thread of its own, so that the screen never waits for it.
 *
 *     if (tmk_errand_is_idle(&e))
 *         tmk_errand_begin(&e, work, arg);
 *     ...
 *     if (tmk_errand_take(&e))        // once it is done
 *         use what `work` wrote to arg
 *
 * What `arg` leads to belongs to the thread from begin until take is true: no lock is needed. A
 * zeroed errand is idle. There is no way to stop one; a program that ends just leaves it. */
#ifndef TMK_TUI_ERRAND_H
#define TMK_TUI_ERRAND_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct tmk_errand {
    pthread_t thread;
    bool is_begun;
    atomic_bool is_done;
    void (*work)(void *arg);
    void *arg;
};

bool tmk_errand_is_idle(const struct tmk_errand *e);
/* Where no thread can be had, the work is done before this returns. */
void tmk_errand_begin(struct tmk_errand *e, void (*work)(void *arg), void *arg);
/* True once for each errand: it has come back. Never waits. */
bool tmk_errand_take(struct tmk_errand *e);

#endif
