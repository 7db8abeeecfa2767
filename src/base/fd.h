/* SPDX-License-Identifier: MIT */
/* base/fd.h - descriptors that stay out of the program's way.
 *
 * Programs count on the lowest free number, close numbers they do not know, or put files of their
 * own at fixed low ones. So what we keep open in a stranger's process gets a high number. */
#ifndef TMK_BASE_FD_H
#define TMK_BASE_FD_H

#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

enum { TMK_FD_HIGH = 700 };

/* The same file under a high number, close-on-exec, and `fd` closed; `fd` itself when that cannot
 * be, or it is -1. */
static inline int tmk_fd_raise(int fd)
{
    int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, TMK_FD_HIGH);
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

/* What a file begins with, at most `size` bytes; returns how many, 0 when it cannot be read. */
static inline size_t tmk_fd_read_small(const char *path, char *buffer, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    size_t n = 0;
    for (ssize_t got; n < size && (got = read(fd, buffer + n, size - n)) > 0;)
        n += (size_t)got;
    close(fd);
    return n;
}

#endif
