/* SPDX-License-Identifier: MIT */
/* base/signals.h - block signals on the calling thread for a while. Threads that it starts
 * meanwhile never take any. */
#ifndef TMK_BASE_SIGNALS_H
#define TMK_BASE_SIGNALS_H

#include <pthread.h>
#include <signal.h>

/* Blocks all signals. tmk_signals_release() takes *ret_before to restore them. */
static inline void tmk_signals_hold(sigset_t *ret_before)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, ret_before);
}

static inline void tmk_signals_release(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

#endif
