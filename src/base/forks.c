/* SPDX-License-Identifier: MIT */
/* base/forks.c - see forks.h. */
#include "base/forks.h"

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

static pthread_mutex_t holding = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static __thread bool is_held __attribute__((tls_model("initial-exec"))); /* by this thread */

static void before_fork(void)
{
    static const long limit_ns = 100000000;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += limit_ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    is_held = pthread_mutex_timedlock(&holding, &until) == 0;
}

static void after_fork(void)
{
    if (is_held)
        pthread_mutex_unlock(&holding);
}

/* No other thread exists in the child that could hold forks. */
static void after_fork_in_child(void)
{
    holding = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
}

static void guard_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

void tmk_forks_hold(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, guard_forks);
    pthread_mutex_lock(&holding);
}

void tmk_forks_let(void)
{
    pthread_mutex_unlock(&holding);
}
