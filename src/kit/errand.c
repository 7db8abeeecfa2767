/* SPDX-License-Identifier: MIT */
/* kit/errand.c - see errand.h. */
#include "kit/errand.h"

#include <stdint.h>
#include <unistd.h>

#include "base/signals.h"

static void tell_done(struct tmk_errand *e)
{
    uint64_t one = 1;
    int fd = e->fd; /* take waits for the thread, so the errand is there until it returns */
    atomic_store_explicit(&e->is_done, true, memory_order_release);
    if (fd > 0)
        (void)!write(fd, &one, sizeof one);
}

static void *run_errand(void *arg)
{
    struct tmk_errand *e = arg;
    e->work(e->arg);
    tell_done(e);
    return NULL;
}

bool tmk_errand_is_idle(const struct tmk_errand *e)
{
    return !e->is_begun;
}

void tmk_errand_begin(struct tmk_errand *e, void (*work)(void *arg), void *arg)
{
    sigset_t before;
    e->work = work;
    e->arg = arg;
    atomic_store(&e->is_done, false);
    tmk_signals_hold(&before); /* signals are for the thread that has the terminal */
    e->is_begun = pthread_create(&e->thread, NULL, run_errand, e) == 0;
    tmk_signals_release(&before);
    if (!e->is_begun) {
        e->work(e->arg);
        e->thread = pthread_self();
        e->is_begun = true;
        tell_done(e);
    }
}

bool tmk_errand_take(struct tmk_errand *e)
{
    if (!e->is_begun || !atomic_load_explicit(&e->is_done, memory_order_acquire))
        return false;
    if (!pthread_equal(e->thread, pthread_self()))
        pthread_join(e->thread, NULL);
    e->is_begun = false;
    return true;
}
