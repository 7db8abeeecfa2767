/* SPDX-License-Identifier: MIT */
/* tui/send_signal.c - see send_signal.h. The start is read from the real /proc, even where devices
 * are read from another one: signals go to the processes of ours. */
#include "tui/send_signal.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kit/kernel_files.h"

/* glibc has these from 2.36 on. */
static int open_pidfd(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static int signal_pidfd(int fd, int number)
{
    return (int)syscall(SYS_pidfd_send_signal, fd, number, NULL, 0);
}

static int refuse_signal(uint32_t pid, int problem, struct tmk_error *err)
{
    if (problem == ESRCH)
        return tmk_fail(err, TMK_EPROCESS, "process %" PRIu32 " has ended", pid);
    return tmk_fail_os(err, TMK_EIO, problem, "no signal was sent to process %" PRIu32, pid);
}

int tmk_send_signal(uint32_t pid, uint64_t start_ticks, int number, struct tmk_error *err)
{
    if (pid == 0 || pid > INT32_MAX) /* 0 and negative numbers are groups */
        return refuse_signal(pid, ESRCH, err);
    int fd = open_pidfd((pid_t)pid);
    if (fd < 0 && errno != ENOSYS)
        return refuse_signal(pid, errno, err);
    uint64_t now = tmk_process_start_ticks("/proc", (pid_t)pid);
    int rc = 0;
    if (now == 0)
        rc = refuse_signal(pid, ESRCH, err);
    else if (now != start_ticks)
        rc = tmk_fail(err, TMK_EPROCESS,
                      "process %" PRIu32 " has ended; another one has its number now", pid);
    else if ((fd >= 0 ? signal_pidfd(fd, number) : kill((pid_t)pid, number)) < 0)
        rc = refuse_signal(pid, errno, err);
    if (fd >= 0)
        close(fd);
    return rc;
}
