/* SPDX-License-Identifier: MIT */
/* awake.c - keeps the cores of a machine from going to sleep, for measurements beside it.
 *
 *     cc -O2 -D_GNU_SOURCE -pthread -o awake bench/awake.c && ./awake & ... ; kill %1
 *
 * A training's threads wait for each other several times a step. On a virtual machine the way out
 * of a core's sleep goes through the host, and takes as long as that happens to take. Threads that
 * run only when nothing else wants to, one on each core, leave no core asleep; what is measured
 * wakes up as if the core were idle. Where two of them are threads of one core,
 * spinning takes a little from the other; and it uses up a group's quota of processor time. */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static void *spin(void *number)
{
    struct sched_param none = {0};
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET((uintptr_t)number, &core);
    if (sched_setaffinity(0, sizeof core, &core) != 0)
        return NULL; /* not one of ours */
    if (sched_setscheduler(0, SCHED_IDLE, &none) != 0) {
        perror("awake: SCHED_IDLE");
        return NULL;
    }
    for (;;)
#ifdef __x86_64__
        __builtin_ia32_pause();
#else
        __asm__ volatile("yield");
#endif
}

int main(void)
{
    long n = sysconf(_SC_NPROCESSORS_CONF);
    pthread_t thread;
    for (uintptr_t i = 0; (long)i < n; i++)
        if (pthread_create(&thread, NULL, spin, (void *)i) != 0)
            perror("awake: thread");
    pause();
    return 0;
}
