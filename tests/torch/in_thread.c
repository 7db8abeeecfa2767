/* SPDX-License-Identifier: MIT */
/* in_thread.c - calls a hook on a thread that Python knows nothing of. */
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>

struct call {
    void (*hook)(void *self, void *address, size_t size);
    void *address;
    size_t size;
};

static void *run(void *arg)
{
    struct call *call = arg;
    prctl(PR_SET_NAME, "of-c-alone", 0, 0, 0);
    call->hook(NULL, call->address, call->size);
    return NULL;
}

int call_in_thread(void *hook, void *address, size_t size)
{
    struct call call = {(void (*)(void *, void *, size_t))hook, address, size};
    pthread_t thread;
    return pthread_create(&thread, NULL, run, &call) || pthread_join(thread, NULL);
}
