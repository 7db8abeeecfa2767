/* SPDX-License-Identifier: MIT */
/* base/fd.h - descriptors that stay out of the program's way.
 *
 * Programs count on the lowest free number, close numbers they do not know, or put files of their
 * own at fixed ones. So the recorder's threads that open files leave the program's table of
 * descriptors for a separate one, where the kernel lets them. A descriptor that has to be in the
 * program's table gets a high number. */
#ifndef TMK_BASE_FD_H
#define TMK_BASE_FD_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

enum { TMK_FD_HIGH = 700 };

/* Moves a descriptor to a high number, with close-on-exec, and closes `fd`. Returns `fd` itself
 * when that cannot be done, or when it is -1. */
static inline int tmk_fd_raise(int fd)
{
    int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, TMK_FD_HIGH);
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

/* Makes the kernel's table of descriptors large enough for high numbers now. Later, when threads
 * share the table, that takes 15 ms: it waits for all processors. */
static inline void tmk_fd_make_room(void)
{
    int fd = tmk_fd_raise(open("/", O_PATH | O_CLOEXEC));
    if (fd >= 0)
        close(fd);
}

/* Gives the calling thread a separate table of descriptors, in which only `keep` is open (-1:
 * nothing). Threads that it makes later share it. Returns false when it still has the program's
 * table. */
bool tmk_fd_leave_all_but(int keep);

/* Reads the first bytes of a file, at most `size`; returns how many, 0 when it cannot be read. */
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
