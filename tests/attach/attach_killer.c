/* SPDX-License-Identifier: MIT */
/* Preloaded into `tidemark attach`: kills that process with SIGKILL at one of its calls that reach
 * into the target, which are ptrace() and pwrite().
 *
 *     ATTACH_KILL_AT      the number of the call, from 1; 0 or not set: never
 *     ATTACH_KILL_WHEN    before; after; late: 3 ms after, when the target has run on as far as it
 *                         can without a tracer that answers
 *     ATTACH_KILL_COUNT   a file for the number of calls that were made, if the process lives on */
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static long n_calls;

static void die(void)
{
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;)
        pause();
}

static int is_the_one(const char *when)
{
    const char *at = getenv("ATTACH_KILL_AT"), *wanted = getenv("ATTACH_KILL_WHEN");
    return at && strtol(at, NULL, 10) == n_calls && wanted && strcmp(wanted, when) == 0;
}

static void before_call(void)
{
    n_calls++;
    if (is_the_one("before"))
        die();
}

static void after_call(void)
{
    if (is_the_one("after"))
        die();
    if (is_the_one("late")) {
        usleep(3000);
        die();
    }
}

long ptrace(enum __ptrace_request request, ...)
{
    static long (*real)(enum __ptrace_request, ...);
    va_list list;
    va_start(list, request);
    pid_t pid = va_arg(list, pid_t);
    void *address = va_arg(list, void *), *data = va_arg(list, void *);
    va_end(list);
    if (!real)
        real = (long (*)(enum __ptrace_request, ...))dlsym(RTLD_NEXT, "ptrace");
    before_call();
    long got = real(request, pid, address, data);
    after_call();
    return got;
}

/* With file offsets of 64 bits this is the C library's pwrite64(), here and in tidemark. */
ssize_t pwrite(int fd, const void *from, size_t n, off_t at)
{
    static ssize_t (*real)(int, const void *, size_t, off_t);
    if (!real)
        real = (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite64");
    before_call();
    ssize_t got = real(fd, from, n, at);
    after_call();
    return got;
}

__attribute__((destructor)) static void write_count(void)
{
    const char *path = getenv("ATTACH_KILL_COUNT");
    FILE *out = path ? fopen(path, "w") : NULL;
    if (!out)
        return;
    fprintf(out, "%ld\n", n_calls);
    fclose(out);
}
