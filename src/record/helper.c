/* SPDX-License-Identifier: MIT */
/* record/helper.c - see helper.h. */
#include "record/helper.h"

#include "base/signals.h"

bool tmk_helper_start(void *(*main)(void *arg), void *arg, size_t stack_bytes)
{
    sigset_t before;
    pthread_attr_t attributes;
    pthread_t thread;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_setstacksize(&attributes, stack_bytes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    tmk_signals_hold(&before);
    int rc = pthread_create(&thread, &attributes, main, arg);
    tmk_signals_release(&before);
    pthread_attr_destroy(&attributes);
    return rc == 0;
}
