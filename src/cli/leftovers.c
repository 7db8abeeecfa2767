/* SPDX-License-Identifier: MIT */
/* cli/leftovers.c - see leftovers.h. */
#include "cli/leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/xalloc.h"
#include "trace/layout.h"
#include "trace/ring.h"

static bool is_ring_of_user(const char *name)
{
    char *start = tmk_xformat("tidemark.%u.", (unsigned)geteuid());
    size_t n = strlen(name);
    bool good =
        strncmp(name, start, strlen(start)) == 0 && n > 5 && strcmp(name + n - 5, ".ring") == 0;
    free(start);
    return good;
}

/* The trace that it belongs to is gone. One that cannot be told is left alone. */
static bool has_no_trace(const char *path)
{
    struct tmk_ring_header header;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    bool good = fd >= 0 && pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header &&
                memcmp(header.magic, TMK_RING_MAGIC, sizeof header.magic) == 0;
    if (fd >= 0)
        close(fd);
    header.trace_path[sizeof header.trace_path - 1] = '\0';
    return good && header.trace_path[0] == '/' && access(header.trace_path, F_OK) < 0;
}

static void add(struct tmk_leftovers *l, const char *path)
{
    struct stat st;
    size_t length = strlen(l->command);
    l->n_rings++;
    l->bytes += stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
    if (length + strlen(path) + 4 < sizeof l->command && !path[strcspn(path, " '\"\\$&;|<>*?")])
        strcat(strcat(l->command, length ? " " : "rm "), path);
}

static void look_in(struct tmk_leftovers *l, const char *folder)
{
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        if (!is_ring_of_user(entry->d_name))
            continue;
        char *path = tmk_xformat("%s/%s", folder, entry->d_name);
        if (tmk_ring_is_held(path) == 0 && has_no_trace(path))
            add(l, path);
        free(path);
    }
    if (dir)
        closedir(dir);
}

void tmk_leftovers_find(struct tmk_leftovers *ret)
{
    const char *folders[] = {getenv("TIDEMARK_RING_DIR"), getenv("XDG_RUNTIME_DIR"), "/dev/shm"};
    *ret = (struct tmk_leftovers){0};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        bool seen = false;
        for (size_t k = 0; k < i; k++)
            seen |= folders[i] && folders[k] && strcmp(folders[i], folders[k]) == 0;
        if (folders[i] && *folders[i] == '/' && !seen)
            look_in(ret, folders[i]);
    }
}
