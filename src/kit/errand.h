/* SPDX-License-Identifier: MIT */
/* tui/errand.h - one piece of work on a thread of its own, so that the screen never waits for it.
 *
 *     if (tmk_errand_is_idle(&e))
 *         tmk_errand_begin(&e, work, arg);
 *     ...
 *     if (tmk_errand_take(&e))        // once it is done
 *         use what `work` wrote to arg
 *
 * From begin until take is true, everything that `arg` leads to belongs to the thread, so no lock
 * is needed. A zeroed errand is idle. An errand cannot be stopped; a program that ends just leaves
 * it. */
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
/* Begin an errand. If no thread can be made, the work is done before this returns. */
void tmk_errand_begin(struct tmk_errand *e, void (*work)(void *arg), void *arg);
/* True once for each errand, when it is done. Never waits. */
bool tmk_errand_take(struct tmk_errand *e);

#endif
