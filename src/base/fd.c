/* SPDX-License-Identifier: MIT */
/* base/fd.c - see fd.h. */
#include "base/fd.h"

#include <sched.h>
#include <sys/syscall.h>

#include "base/folder.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum { CLOSE_RANGE_UNSHARE_FLAG = 2 };

/* The descriptor that a name in /proc/self/fd stands for; -1 for "." and "..". */
static int fd_of_name(const char *name)
{
    int n = *name >= '0' && *name <= '9' ? 0 : -1;
    for (; *name >= '0' && *name <= '9'; name++)
        n = n * 10 + (*name - '0');
    return n;
}

/* Copies the table and closes all but `keep`, for kernels before 5.9, which cannot leave
 * descriptors out. A network file system takes the end of a copy for a close, and writes back the
 * changes to the file. */
static bool copy_and_close(int keep)
{
    struct tmk_folder names;
    if (unshare(CLONE_FILES) < 0 || tmk_folder_open(&names, "/proc/thread-self/fd") < 0)
        return false;
    for (const char *name; (name = tmk_folder_next(&names)) != NULL;) {
        int fd = fd_of_name(name);
        if (fd >= 0 && fd != names.fd && fd != keep)
            close(fd);
    }
    tmk_folder_close(&names);
    return true;
}

bool tmk_fd_leave_all_but(int keep)
{
    unsigned above = keep < 0 ? 0 : (unsigned)keep + 1;
    if (syscall(SYS_close_range, above, ~0u, CLOSE_RANGE_UNSHARE_FLAG) < 0)
        return copy_and_close(keep);
    if (keep > 0)
        syscall(SYS_close_range, 0u, (unsigned)keep - 1, 0u);
    return true;
}
