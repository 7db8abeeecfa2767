/* SPDX-License-Identifier: MIT */
/* in_thread.c - calls a hook on a thread that Python knows nothing of. Built as libtorch_cpu.so
 * it stands for that: it has the engine's function, and calls it through an import slot. */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
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

/* The same by fake_c10.c's report_with(), several blocks; on a thread that has a state of Python's
 * but runs none, as torch's engine gives one to each of its own. */
struct reports {
    void (*report)(void *address, int64_t size, uint64_t reserved);
    uintptr_t first, n;
    const char *name;
    int has_state;
};

static void *find(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

static void *run_reports(void *arg)
{
    const struct reports *r = arg;
    void *state = NULL;
    int lock = 0;
    prctl(PR_SET_NAME, r->name, 0, 0, 0);
    if (r->has_state) {
        lock = ((int (*)(void))find("PyGILState_Ensure"))();
        state = ((void *(*)(void))find("PyEval_SaveThread"))();
    }
    for (uintptr_t i = 0; i < r->n; i++)
        r->report((void *)((r->first + i) * 4096), 512, 1 << 20);
    if (r->has_state) {
        ((void (*)(void *))find("PyEval_RestoreThread"))(state);
        ((void (*)(int))find("PyGILState_Release"))(lock);
    }
    return NULL;
}

int report_in_thread(void *report, uintptr_t first, uintptr_t n, const char *name, int has_state)
{
    struct reports r = {(void (*)(void *, int64_t, uint64_t))report, first, n, name, has_state};
    pthread_t thread;
    return pthread_create(&thread, NULL, run_reports, &r) || pthread_join(thread, NULL);
}
