/* SPDX-License-Identifier: MIT */
/* wrap_malloc.c - for LD_PRELOAD: wraps malloc and kin, which it finds with dlsym(RTLD_NEXT) at the
 * first call, when that may be the very first thing that happens in the process. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_long n_calls;
static void *(*next_malloc)(size_t);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static void (*next_free)(void *);

static char early[65536]; /* for what dlsym itself allocates */
static size_t n_early;

static int is_early(const void *memory)
{
    return (const char *)memory >= early && (const char *)memory < early + sizeof early;
}

static void *early_alloc(size_t size)
{
    void *memory = early + n_early;
    n_early += (size + 15) / 16 * 16;
    if (n_early > sizeof early)
        _exit(98);
    return memory;
}

/* False while it is under way, further up on this stack. */
static int find(void)
{
    static int is_finding;
    if (next_free)
        return 1;
    if (is_finding)
        return 0;
    is_finding = 1;
    *(void **)&next_malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&next_calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&next_realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&next_free = dlsym(RTLD_NEXT, "free");
    is_finding = 0;
    return 1;
}

void *malloc(size_t size)
{
    n_calls++;
    return find() ? next_malloc(size) : early_alloc(size);
}

void *calloc(size_t count, size_t size)
{
    n_calls++;
    return find() ? next_calloc(count, size) : early_alloc(count * size);
}

void *realloc(void *memory, size_t size)
{
    n_calls++;
    if (!find() || is_early(memory))
        _exit(97); /* nobody does that so early */
    return next_realloc(memory, size);
}

void free(void *memory)
{
    if (memory && !is_early(memory) && find())
        next_free(memory);
}

/* Not in `tidemark run`, which is preloaded like the program. */
__attribute__((destructor)) static void tell(void)
{
    if (strncmp(program_invocation_short_name, "loader_", 7) == 0)
        dprintf(STDERR_FILENO, "wrap_malloc: %s\n", n_calls > 10 ? "called" : "not called");
}
