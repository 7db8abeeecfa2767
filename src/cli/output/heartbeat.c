/* SPDX-License-Identifier: MIT */
/* cli/output/heartbeat.c - see heartbeat.h. */
#include "cli/output/heartbeat.h"

#include <stdio.h>
#include <time.h>

#include "base/clock.h"

#define BEAT_NS 100000000u
#define SECOND_NS 1000000000u

static struct timespec next_beat(void)
{
    uint64_t ns = tmk_clock_monotonic_ns() + BEAT_NS;
    return (struct timespec){.tv_sec = (time_t)(ns / SECOND_NS), .tv_nsec = (long)(ns % SECOND_NS)};
}

static void *beat_until_end(void *arg)
{
    struct tmk_heartbeat *h = arg;
    pthread_mutex_lock(&h->lock);
    while (!h->stop) {
        struct timespec until = next_beat();
        pthread_cond_timedwait(&h->wake, &h->lock, &until);
        if (!h->stop)
            tmk_progress_tell(&h->progress, 0, 0);
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

void tmk_heartbeat_start(struct tmk_heartbeat *h, const char *what)
{
    pthread_condattr_t attributes;
    *h = (struct tmk_heartbeat){0};
    tmk_progress_init(&h->progress, stderr, what);
    pthread_mutex_init(&h->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&h->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    h->is_running = pthread_create(&h->thread, NULL, beat_until_end, h) == 0;
}

void tmk_heartbeat_stop(struct tmk_heartbeat *h)
{
    if (!h->is_running)
        return;
    pthread_mutex_lock(&h->lock);
    h->stop = true;
    pthread_cond_signal(&h->wake);
    pthread_mutex_unlock(&h->lock);
    pthread_join(h->thread, NULL);
    h->is_running = false;
    tmk_progress_fini(&h->progress);
}
