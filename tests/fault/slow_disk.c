/* SPDX-License-Identifier: MIT */
/* tests/fault/slow_disk.c - a disk that hangs, to be preloaded behind the recorder.
 *
 * SLOW_DISK=CALL:N:SECONDS lets the Nth of these calls of the recorder's packer thread take so
 * long; CALL:N:SECONDS:M ends the process by SIGKILL at the Mth of these calls after that, and
 * CALL:N:kill at the Nth. CALL is mkdir, open (of the run's share of the disk), pwritev (to a
 * trace) or fdatasync. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static bool is_packer(void)
{
    char name[17] = "";
    prctl(PR_GET_NAME, name, 0, 0, 0);
    return strcmp(name, "tidemark") == 0 && getpid() != (pid_t)syscall(SYS_gettid);
}

static void hang_in(const char *call)
{
    static int n_calls;
    const char *what = getenv("SLOW_DISK");
    size_t n = strlen(call);
    if (!what || strncmp(what, call, n) != 0 || what[n] != ':' || !is_packer())
        return;
    char *how;
    long slow_one = strtol(what + n + 1, &how, 10);
    const char *more = strchr(how + 1, ':');
    bool is_last = ++n_calls == slow_one && strcmp(how, ":kill") == 0;
    if (is_last || (more && n_calls == slow_one + atoi(more + 1)))
        kill(getpid(), SIGKILL);
    if (n_calls == slow_one)
        nanosleep(&(struct timespec){.tv_sec = atoi(how + 1)}, NULL);
}

/* The thread has descriptors of its own. */
static bool is_trace(int fd)
{
    char link[64], path[4096] = "";
    snprintf(link, sizeof link, "/proc/thread-self/fd/%d", fd);
    return readlink(link, path, sizeof path - 1) > 0 && strstr(path, ".trace");
}

int mkdir(const char *path, mode_t mode)
{
    hang_in("mkdir");
    return (int)syscall(SYS_mkdirat, -100 /* AT_FDCWD */, path, mode);
}

int open64(const char *path, int flags, ...);

/* `open` is this one, too: see below. */
int open64(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    size_t n = strlen(path);
    if (n > 5 && strcmp(path + n - 5, ".disk") == 0)
        hang_in("open");
    return (int)syscall(SYS_openat, -100 /* AT_FDCWD */, path, flags, mode);
}

ssize_t pwritev(int fd, const struct iovec *parts, int n_parts, off_t offset)
{
    ssize_t (*next)(int, const struct iovec *, int, off_t) =
        (ssize_t(*)(int, const struct iovec *, int, off_t))dlsym(RTLD_NEXT, "pwritev");
    if (is_trace(fd))
        hang_in("pwritev");
    return next(fd, parts, n_parts, offset);
}

int fdatasync(int fd)
{
    hang_in("fdatasync");
    return (int)syscall(SYS_fdatasync, fd);
}
