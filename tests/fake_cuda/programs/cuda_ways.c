/* SPDX-License-Identifier: MIT */
/* cuda_ways.c - ways to the driver's functions.
 *
 *   linked    the program imports them (LINKED: calls; POINTERS: a table that the loader fills)
 *   dlsym     dlsym of "cuMemAlloc_v2" and so on, each
 *   proc      as cudart, and with it torch, JAX and CuPy: dlsym of "cuGetProcAddress_v2", which is
 *             asked for "cuGetProcAddress", and that one for all the rest
 *   thread    the same, for functions whose default stream is the thread's
 *   old_proc  the first cuGetProcAddress, of CUDA 11, with four parameters */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_calls.h"

#ifdef LINKED

void cuda_ways_find(const char *way)
{
    (void)way; /* the loader did it */
}

#elif defined(POINTERS)

#define ADDRESS(function, version) .function = (function),
struct cuda_calls cuda_calls = {PROGRAM_FUNCTIONS(ADDRESS)};

void cuda_ways_find(const char *way)
{
    (void)way;
}

#else

typedef CUresult get_proc(const char *, void **, int, uint64_t, int *);
typedef CUresult get_proc_old(const char *, void **, int, uint64_t);

struct cuda_calls cuda_calls;

static void *library;
static get_proc *ask;
static get_proc_old *ask_old;
static uint64_t flags;

static void *found(void *function, const char *name)
{
    if (!function) {
        fprintf(stderr, "cuda_ways: no %s\n", name);
        exit(1);
    }
    return function;
}

static void *by_dlsym(const char *name, const char *symbol, int version)
{
    (void)name;
    (void)version;
    return found(dlsym(library, symbol), symbol);
}

static void *by_proc(const char *name, const char *symbol, int version)
{
    void *function = NULL;
    int status = -1;
    (void)symbol;
    if (ask(name, &function, version, flags, &status) != CUDA_SUCCESS || status != 0)
        function = NULL;
    return found(function, name);
}

static void *by_old_proc(const char *name, const char *symbol, int version)
{
    void *function = NULL;
    (void)symbol;
    if (ask_old(name, &function, version, flags) != CUDA_SUCCESS)
        function = NULL;
    return found(function, name);
}

static void find_all(void *(*find)(const char *name, const char *symbol, int version))
{
#define TEXT(symbol) #symbol
#define SYMBOL(function) TEXT(function)
#define FIND(function, version)                                                                    \
    cuda_calls.function =                                                                          \
        (__typeof__(cuda_calls.function))find(#function, SYMBOL(function), version);
    PROGRAM_FUNCTIONS(FIND)
}

void cuda_ways_find(const char *way)
{
    library = found(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), "libcuda.so.1");
    if (strcmp(way, "dlsym") == 0) {
        find_all(by_dlsym);
    } else if (strcmp(way, "proc") == 0 || strcmp(way, "thread") == 0) {
        ask = (get_proc *)by_dlsym(NULL, "cuGetProcAddress_v2", 0);
        ask = (get_proc *)by_proc("cuGetProcAddress", NULL, 12000);
        flags = way[0] == 't' ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : 0;
        find_all(by_proc);
    } else if (strcmp(way, "old_proc") == 0) {
        ask_old = (get_proc_old *)by_dlsym(NULL, "cuGetProcAddress", 0);
        find_all(by_old_proc);
    } else {
        found(NULL, way);
    }
}

#endif
