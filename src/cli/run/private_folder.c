/* SPDX-License-Identifier: MIT */
/* cli/run/private_folder.c - see private_folder.h. */
#include "cli/run/private_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Open a folder as a descriptor; -1 when others can look into it or write to it. */
static int open_private(const char *path, bool make)
{
    struct stat st;
    if (!path || *path != '/' || (make && mkdir(path, 0700) < 0 && errno != EEXIST))
        return -1;
    int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 077) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

int tmk_private_folder_open(char *path, size_t size)
{
    char of_user[32], in_tmp[40];
    snprintf(of_user, sizeof of_user, "/run/user/%u", (unsigned)geteuid());
    snprintf(in_tmp, sizeof in_tmp, "/tmp/tidemark-%u", (unsigned)geteuid());
    const char *const places[] = {getenv("XDG_RUNTIME_DIR"), of_user, in_tmp};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        int fd = open_private(places[i], places[i] == in_tmp);
        if (fd >= 0 && (size_t)snprintf(path, size, "%s", places[i]) < size)
            return fd;
        if (fd >= 0)
            close(fd);
    }
    return -1;
}
