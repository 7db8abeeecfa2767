/* SPDX-License-Identifier: MIT */
/* cli/output_file.c - see output_file.h. */
#include "cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/say.h"
#include "cli/xalloc.h"

static int complain(const char *path, int reason)
{
    tmk_say("cannot write %s: %s", path, strerror(reason));
    return TMK_EXIT_FINDING;
}

/* With its "/", so that a name may follow; "" is the current one. The caller's to free. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return tmk_xformat("%.*s", slash ? (int)(slash - path + 1) : 0, path);
}

static int check_folder(const char *path)
{
    char *folder = folder_of(path);
    int reason = access(*folder ? folder : ".", W_OK | X_OK) < 0 ? errno : 0;
    free(folder);
    return reason;
}

/* A name of a descriptor may lead to a plain file, whose owner would not see one put in its place.
 */
static bool is_special(const char *path, const struct stat *found)
{
    return !S_ISREG(found->st_mode) || strncmp(path, "/dev/", 5) == 0 ||
           strncmp(path, "/proc/", 6) == 0;
}

/* What a new file may take the place of, the caller's to free. NULL: it is written straight, or
 * with a *ret_reason, not at all. */
static char *find_target(const char *path, int *ret_reason)
{
    struct stat found;
    *ret_reason = 0;
    if (stat(path, &found) < 0) {
        bool is_new = errno == ENOENT && lstat(path, &found) < 0;
        *ret_reason = is_new ? check_folder(path) : errno == ENOENT ? 0 : errno;
        return is_new && *ret_reason == 0 ? tmk_xstrdup(path) : NULL;
    }
    if (S_ISDIR(found.st_mode))
        *ret_reason = EISDIR;
    else if (access(path, W_OK) < 0)
        *ret_reason = errno;
    if (*ret_reason != 0 || is_special(path, &found))
        return NULL;
    char *target = realpath(path, NULL);
    if (target && check_folder(target) == 0)
        return target;
    free(target);
    return NULL;
}

int tmk_output_file_check(const char *path)
{
    int reason;
    free(find_target(path, &reason));
    return reason == 0 ? 0 : complain(path, reason);
}

/* The rights of the file that it replaces, or those that a new file gets. */
static int give_rights(int fd, const char *target)
{
    struct stat old;
    mode_t mask = umask(0);
    umask(mask);
    return fchmod(fd, stat(target, &old) == 0 ? old.st_mode & 07777 : 0666 & ~mask);
}

int tmk_output_file_open(struct tmk_output_file *o, const char *path)
{
    int reason;
    *o = (struct tmk_output_file){.path = path, .fd = -1};
    o->target = find_target(path, &reason);
    if (reason != 0)
        return complain(path, reason);
    if (o->target) {
        char *folder = folder_of(o->target);
        o->temporary = tmk_xformat("%s.tidemark-XXXXXX", folder);
        free(folder);
        o->fd = mkostemp(o->temporary, O_CLOEXEC);
    } else {
        o->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    }
    reason = o->fd < 0 ? errno : 0;
    if (reason == 0 && o->target && give_rights(o->fd, o->target) < 0)
        reason = errno;
    if (reason == 0)
        return 0;
    (void)tmk_output_file_close(o, false);
    return complain(path, reason);
}

int tmk_output_file_close(struct tmk_output_file *o, bool keep)
{
    int reason = 0;
    if (o->fd >= 0 && close(o->fd) < 0)
        reason = errno;
    if (o->target && o->fd >= 0 && (!keep || reason != 0))
        unlink(o->temporary);
    else if (o->target && o->fd >= 0 && rename(o->temporary, o->target) < 0) {
        reason = errno;
        unlink(o->temporary);
    }
    free(o->target);
    free(o->temporary);
    return keep && reason != 0 ? complain(o->path, reason) : 0;
}
