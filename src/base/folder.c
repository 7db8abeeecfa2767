/* SPDX-License-Identifier: MIT */
/* base/folder.c - see folder.h. */
#include "base/folder.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

struct kernel_entry { /* as getdents64() writes it; glibc 2.28 has no function for it */
    uint64_t inode;
    int64_t offset;
    uint16_t length;
    uint8_t type;
    char name[];
};

int tmk_folder_open(struct tmk_folder *f, const char *path)
{
    f->at = f->end = 0;
    f->fd = tmk_fd_raise(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return f->fd < 0 ? -1 : 0;
}

const char *tmk_folder_next(struct tmk_folder *f)
{
    if (f->at >= f->end) {
        long got = f->fd < 0 ? -1 : syscall(SYS_getdents64, f->fd, f->entries, sizeof f->entries);
        f->at = 0;
        f->end = got > 0 ? (size_t)got : 0;
        if (got <= 0)
            return NULL;
    }
    const struct kernel_entry *entry = (const struct kernel_entry *)(f->entries + f->at);
    f->at += entry->length;
    return entry->name;
}

void tmk_folder_close(struct tmk_folder *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}
