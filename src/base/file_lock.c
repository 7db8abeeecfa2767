/* SPDX-License-Identifier: MIT */
/* base/file_lock.c - see file_lock.h. */
#include "base/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

int tmk_file_lock(int fd, enum tmk_lock_kind kind, int byte)
{
    bool shared = kind == TMK_LOCK_SHARED;
    struct flock lock = {
        .l_type = shared ? F_RDLCK : F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int rc = fcntl(fd, F_OFD_SETLK, &lock);
    if (rc < 0 && errno == EINVAL)
        rc = flock(fd, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB);
    return rc;
}

void tmk_file_unlock(int fd, int byte)
{
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    if (fcntl(fd, F_OFD_SETLK, &lock) < 0 && errno == EINVAL)
        flock(fd, LOCK_UN);
}

int tmk_file_lock_is_taken(int fd, int byte)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    if (fcntl(fd, F_OFD_GETLK, &lock) == 0)
        return lock.l_type != F_UNLCK;
    if (errno != EINVAL)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return flock(fd, LOCK_UN);
    return errno == EWOULDBLOCK ? 1 : -1;
}

bool tmk_file_lock_is_by_byte(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    return fcntl(fd, F_OFD_GETLK, &lock) == 0;
}
