/* SPDX-License-Identifier: MIT */
/* hook_cost.c - stands for libc10.so: reports blocks through an import slot, in a loop, and times
 * it.
 *
 * bench/torch_cost.py loads it, built under that name, and calls it from Python functions of known
 * depth. Under `tidemark run` the slot leads to the hook, which records and calls on to the
 * function here, as it does with torch's. Blocks are on CUDA device 0. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define USAGE "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"

void usage(void *address, int64_t size, uint64_t allocated, uint64_t reserved,
           uint16_t device) __asm__(USAGE) __attribute__((visibility("default"), noinline));

static volatile int64_t total;

void usage(void *address, int64_t size, uint64_t allocated, uint64_t reserved, uint16_t device)
{
    (void)address, (void)allocated, (void)reserved, (void)device;
    total += size;
}

enum { DEVICE = 1, BATCH = 2000, LINE = 64 };

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The same function, but not through the import slot: what the calls take without a hook. */
void usage_direct(void *address, int64_t size, uint64_t allocated, uint64_t reserved,
                  uint16_t device) __attribute__((alias(USAGE), visibility("hidden")));

typedef void usage_function(void *address, int64_t size, uint64_t allocated, uint64_t reserved,
                            uint16_t device);

/* ns of BATCH calls, each about another block. */
static __attribute__((noinline)) double batch(usage_function *function, int64_t size)
{
    double start = now_ns();
    for (uint64_t i = 0; i < BATCH; i++)
        function((void *)(uintptr_t)(0x7f0000000000 + i * 512), size, 0, 1 << 30, DEVICE);
    return now_ns() - start;
}

/* What a training does between two blocks, as caches see it: go through more data and code than
 * they hold. Two clock readings in the end, so that the next does not find its own way cold. */
struct elsewhere {
    volatile uint8_t *bytes;
    uint8_t *code; /* a function that returns at once, in each line */
    size_t n;      /* bytes of each */
};

#ifdef __x86_64__
static const uint8_t function[] = {0xc3};
#else
static const uint8_t function[] = {0xc0, 0x03, 0x5f, 0xd6};
#endif

static int prepare(struct elsewhere *ret, size_t n)
{
    uint8_t *code = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *ret = (struct elsewhere){calloc(1, n), code == MAP_FAILED ? NULL : code, n};
    if (!ret->bytes || !ret->code)
        return -1;
    for (size_t i = 0; i < n; i += LINE)
        memcpy(code + i, function, sizeof function);
    __builtin___clear_cache((char *)code, (char *)code + n);
    return mprotect(code, n, PROT_READ | PROT_EXEC);
}

static void clear(struct elsewhere *other)
{
    free((void *)other->bytes);
    if (other->code)
        munmap(other->code, other->n);
}

static double go_elsewhere(const struct elsewhere *other)
{
    for (size_t i = 0; i < other->n; i += LINE)
        other->bytes[i]++;
    for (size_t i = 0; i < other->n; i += LINE)
        ((void (*)(void))(other->code + i))();
    (void)now_ns();
    return now_ns();
}

/* ns of one call after that, the clock's included. */
static __attribute__((noinline)) double
cold_call(usage_function *function, const struct elsewhere *other, uint64_t i, int64_t size)
{
    double start = go_elsewhere(other);
    function((void *)(uintptr_t)(0x7f0000000000 + i * 512), size, 0, 1 << 30, DEVICE);
    return now_ns() - start;
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    return values[n / 2];
}

/* The same for single blocks, each after so many bytes of other memory: medians of what the hook
 * adds. */
int hook_cost_cold(int n, size_t other_bytes, double *alloc_ns, double *free_ns)
{
    usage_function *volatile hooked = usage, *volatile direct = usage_direct;
    double *without = calloc((size_t)n, sizeof *without), *alloc = calloc((size_t)n, sizeof *alloc);
    double *freed = calloc((size_t)n, sizeof *freed);
    struct elsewhere other;
    int rc = prepare(&other, other_bytes) == 0 && without && alloc && freed ? 0 : -1;
    for (int i = 0; rc == 0 && i < n; i++) {
        without[i] = cold_call(direct, &other, (uint64_t)i, 512);
        alloc[i] = cold_call(hooked, &other, (uint64_t)i, 512);
        freed[i] = cold_call(hooked, &other, (uint64_t)i, -512);
    }
    if (rc == 0) {
        *alloc_ns = median(alloc, n) - median(without, n);
        *free_ns = median(freed, n) - median(without, n);
    }
    free(without);
    free(alloc);
    free(freed);
    clear(&other);
    return rc;
}

/* Allocations, then frees, in batches with pauses for the packer: ns of each that the hook adds,
 * mean over batches. */
int hook_cost(int n_batches, double *alloc_ns, double *free_ns, double *alloc_median_ns)
{
    usage_function *volatile hooked = usage, *volatile direct = usage_direct;
    double *each = calloc((size_t)n_batches, sizeof *each);
    if (!each)
        return -1;
    double alloc_sum = 0, free_sum = 0;
    for (int b = 0; b < n_batches; b++) {
        double without = batch(direct, 512);
        double alloc = batch(hooked, 512) - without;
        double freed = batch(hooked, -512) - without;
        each[b] = alloc / BATCH;
        alloc_sum += alloc;
        free_sum += freed;
        nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    }
    qsort(each, (size_t)n_batches, sizeof *each, by_value);
    *alloc_median_ns = each[n_batches / 2];
    *alloc_ns = alloc_sum / n_batches / BATCH;
    *free_ns = free_sum / n_batches / BATCH;
    free(each);
    return 0;
}

/* Both on a thread as autograd's are: torch has given it a state of Python's, but it has no frames.
 */
struct errand {
    int n_batches;
    size_t other_bytes;
    double *figures; /* of hook_cost(), then of hook_cost_cold() */
    int rc;
};

static void *run(void *arg)
{
    struct errand *e = arg;
    int (*ensure)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
    void *(*save)(void) = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyEval_SaveThread");
    void (*restore)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "PyEval_RestoreThread");
    void (*release)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release");
    bool has_python = ensure && save && restore && release;
    int lock = has_python ? ensure() : 0;
    void *state = has_python ? save() : NULL;
    pthread_setname_np(pthread_self(), "pt_autograd_0");
    e->rc = hook_cost(e->n_batches, &e->figures[0], &e->figures[1], &e->figures[2]);
    if (e->rc == 0)
        e->rc = hook_cost_cold(5 * e->n_batches, e->other_bytes, &e->figures[3], &e->figures[4]);
    if (has_python) {
        restore(state);
        release(lock);
    }
    return NULL;
}

int hook_cost_of_autograd(int n_batches, size_t other_bytes, double *figures)
{
    struct errand e = {n_batches, other_bytes, figures, -1};
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, &e) != 0)
        return -1;
    pthread_join(thread, NULL);
    return e.rc;
}
