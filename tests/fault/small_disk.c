/* SPDX-License-Identifier: MIT */
/* small_disk.c - preloaded: fstatvfs() says that 100 GiB are free until the file $SMALL_DISK_FLAG
 * is there, then 20 MiB: a disk that somebody else fills, without the wait. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

typedef int fstatvfs_function(int fd, struct statvfs *ret);

int fstatvfs(int fd, struct statvfs *ret)
{
    fstatvfs_function *next = (fstatvfs_function *)dlsym(RTLD_NEXT, "fstatvfs64");
    const char *flag = getenv("SMALL_DISK_FLAG");
    int rc = next ? next(fd, ret) : -1;
    if (rc == 0 && flag) {
        ret->f_frsize = 4096;
        ret->f_bavail = access(flag, F_OK) == 0 ? (20ull << 20) / 4096 : (100ull << 30) / 4096;
    }
    return rc;
}
