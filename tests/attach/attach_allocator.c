/* SPDX-License-Identifier: MIT */
/* A program with an allocator of its own, whose lock it holds for a while:
 *
 *     attach_allocator inside MS    within malloc(), which attach can see
 *     attach_allocator beside MS    in a function that looks harmless, which attach cannot see
 *
 * A thread started meanwhile from this very thread would wait for that lock for ever. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { POOL_BYTES = 64 << 20, SLOW = 4711 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *pool, *next;
static char memory[POOL_BYTES];
static int slow_ms;
static volatile sig_atomic_t is_over;

static int nap(int ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    return nanosleep(&t, NULL) < 0 ? errno : 0;
}

static void *take(size_t alignment, size_t size)
{
    next = pool ? next : (pool = memory);
    uintptr_t at = ((uintptr_t)next + 15 + alignment) / alignment * alignment;
    next = (char *)at + size;
    ((size_t *)at)[-1] = size;
    return (void *)at;
}

void *malloc(size_t size)
{
    pthread_mutex_lock(&lock);
    if (size == SLOW && nap(slow_ms) != 0)
        abort();
    void *p = take(16, size);
    pthread_mutex_unlock(&lock);
    return p;
}

void *memalign(size_t alignment, size_t size);
void *memalign(size_t alignment, size_t size)
{
    pthread_mutex_lock(&lock);
    void *p = take(alignment, size);
    pthread_mutex_unlock(&lock);
    return p;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

void *calloc(size_t n, size_t size)
{
    return malloc(n * size); /* the pool is used once, and begins as zeros */
}

void *realloc(void *old, size_t size)
{
    void *p = malloc(size);
    size_t n = old ? ((size_t *)old)[-1] : 0;
    return memcpy(p, old ? old : p, n < size ? n : size);
}

void free(void *p)
{
    (void)p;
}

static void on_term(int signal)
{
    (void)signal;
    is_over = 1;
}

int main(int argc, char **argv)
{
    struct sigaction term = {.sa_handler = on_term};
    int ms = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0, error = 0;
    sigaction(SIGTERM, &term, NULL);
    puts("ready");
    fflush(stdout);
    if (argc > 1 && strcmp(argv[1], "inside") == 0) {
        slow_ms = ms;
        error = malloc(SLOW) == NULL;
    } else {
        pthread_mutex_lock(&lock);
        error = nap(ms);
        pthread_mutex_unlock(&lock);
    }
    while (!is_over)
        (void)nap(20);
    printf("error %d\n", error);
    return 0;
}
