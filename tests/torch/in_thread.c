/* SPDX-License-Identifier: MIT */
/* in_thread.c - calls a hook on a thread that Python knows nothing of. Built as libtorch_cpu.so
 * it stands for that: it has the engine's function, and calls it through an import slot. */
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>

#define EXECUTE                                                                                    \
    "_ZN5torch8autograd6Engine7executeERKSt6vectorINS0_4EdgeESaIS3_EERKS2_IN2at6TensorESaIS9_"     \
    "EEbbbS7_"

/* Eight arguments, two of them on the stack: all must arrive. */
long execute(long a, long b, long c, long d, long e, long f, long g, long h) __asm__(EXECUTE)
    __attribute__((noinline, visibility("default")));

long execute(long a, long b, long c, long d, long e, long f, long g, long h)
{
    return a + 2 * b + 4 * c + 8 * d + 16 * e + 32 * f + 64 * g + 128 * h;
}

long run_backward(void)
{
    return execute(1, 1, 1, 1, 1, 1, 1, 1);
}

struct call {
    void (*hook)(void *self, void *address, size_t size);
    void *address;
    size_t size;
    const char *name;
};

static void *run(void *arg)
{
    struct call *call = arg;
    prctl(PR_SET_NAME, call->name, 0, 0, 0);
    call->hook(NULL, call->address, call->size);
    return NULL;
}

int call_in_thread(void *hook, void *address, size_t size, const char *name)
{
    struct call call = {(void (*)(void *, void *, size_t))hook, address, size, name};
    pthread_t thread;
    return pthread_create(&thread, NULL, run, &call) || pthread_join(thread, NULL);
}
