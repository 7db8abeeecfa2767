/* SPDX-License-Identifier: MIT */
/* cli/output/output_file.c - see output_file.h. */
#include "cli/output/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/output/say.h"
#include "cli/output/unfinished.h"
#include "cli/output/xalloc.h"

enum { LINK_BYTES = 48, MOST_NAMES = 8 };

static int complain_of_output(const char *path, int reason)
{
    tmk_say("cannot write %s: %s", path, strerror(reason));
    return TMK_EXIT_FINDING;
}

/* Returns the folder of a path with its "/", so that a name may follow; "" is the current one. The
 * caller frees it. */
static char *folder_of_target(const char *path)
{
    const char *slash = strrchr(path, '/');
    return tmk_xformat("%.*s", slash ? (int)(slash - path + 1) : 0, path);
}

/* Writes the path under which /proc has a descriptor. */
static const char *link_of(int fd, char *buffer)
{
    snprintf(buffer, LINK_BYTES, "/proc/self/fd/%d", fd);
    return buffer;
}

static int check_folder(const char *path)
{
    char *folder = folder_of_target(path);
    int reason = access(*folder ? folder : ".", W_OK | X_OK) < 0 ? errno : 0;
    free(folder);
    return reason;
}

/* Returns whether a path is written straight: it is no plain file, or it names a descriptor such as
 * /dev/stdout. That may lead to a plain file, and whoever has it open would not see a new file in
 * its place. */
static bool is_special(const char *path, const struct stat *found)
{
    return !S_ISREG(found->st_mode) || strncmp(path, "/dev/", 5) == 0 ||
           strncmp(path, "/proc/", 6) == 0;
}

/* Find the path that a new file may replace; the caller frees it. NULL: the path is written
 * straight or, with a *ret_reason, not at all. */
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
    return reason == 0 ? 0 : complain_of_output(path, reason);
}

/* Give the file the rights of the file that it replaces, or the rights of a new file. */
static int give_rights(int fd, const char *target)
{
    struct stat old;
    mode_t mask = umask(0);
    umask(mask);
    return fchmod(fd, stat(target, &old) == 0 ? old.st_mode & 07777 : 0666 & ~mask);
}

/* Open a file without a name. -1: the file system cannot do that, or /proc is missing, through
 * which it gets its name at the end. */
static int open_unnamed(const char *folder)
{
    char link[LINK_BYTES];
    int fd = open(*folder ? folder : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 || access(link_of(fd, link), F_OK) == 0)
        return fd;
    close(fd);
    return -1;
}

static int open_named(struct tmk_output_file *o, const char *folder)
{
    sigset_t before;
    o->temporary = tmk_xformat("%s.tidemark-XXXXXX", folder);
    tmk_unfinished_hold(&before);
    int fd = mkostemp(o->temporary, O_CLOEXEC);
    o->unfinished = fd < 0 ? -1 : tmk_unfinished_add(o->temporary);
    tmk_unfinished_release(&before);
    return fd;
}

static int open_output(struct tmk_output_file *o, const char *path, bool is_named)
{
    int reason;
    *o = (struct tmk_output_file){.path = path, .fd = -1, .unfinished = -1};
    o->target = find_target(path, &reason);
    if (reason != 0)
        return complain_of_output(path, reason);
    if (o->target) {
        char *folder = folder_of_target(o->target);
        o->fd = is_named ? -1 : open_unnamed(folder);
        if (o->fd < 0)
            o->fd = open_named(o, folder);
        free(folder);
    } else {
        o->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    }
    reason = o->fd < 0 ? errno : 0;
    if (reason == 0 && o->target && give_rights(o->fd, o->target) < 0)
        reason = errno;
    if (reason == 0)
        return 0;
    (void)tmk_output_file_close(o, false);
    return complain_of_output(path, reason);
}

int tmk_output_file_open(struct tmk_output_file *o, const char *path)
{
    return open_output(o, path, false);
}

int tmk_output_file_open_named(struct tmk_output_file *o, const char *path)
{
    return open_output(o, path, true);
}

/* Give the file a name beside the target: a name that exists cannot pass to another file in one
 * step. 0, or errno. */
static int give_name(struct tmk_output_file *o)
{
    char link[LINK_BYTES], *folder = folder_of_target(o->target);
    int reason = EEXIST;
    for (int i = 0; i < MOST_NAMES && reason == EEXIST; i++) {
        uint64_t number = 0;
        free(o->temporary);
        reason = getrandom(&number, sizeof number, 0) < 0 ? errno : 0;
        o->temporary = tmk_xformat("%s.tidemark-%016" PRIx64, folder, number);
        if (reason == 0 &&
            linkat(AT_FDCWD, link_of(o->fd, link), AT_FDCWD, o->temporary, AT_SYMLINK_FOLLOW) < 0)
            reason = errno;
    }
    free(folder);
    return reason;
}

/* Put the file in the target's place, or remove it. 0, or errno. */
static int settle_output(struct tmk_output_file *o, bool keep)
{
    int reason = keep && o->fd >= 0 && !o->temporary ? give_name(o) : 0;
    bool has_name = o->fd >= 0 && o->temporary && reason == 0;
    if (o->fd >= 0 && close(o->fd) < 0 && reason == 0)
        reason = errno;
    if (has_name && keep && reason == 0 && rename(o->temporary, o->target) < 0)
        reason = errno;
    if (has_name && (!keep || reason != 0))
        unlink(o->temporary);
    return reason;
}

int tmk_output_file_close(struct tmk_output_file *o, bool keep)
{
    int reason = 0;
    if (o->target) {
        sigset_t before;
        tmk_unfinished_hold(&before);
        reason = settle_output(o, keep);
        tmk_unfinished_drop(o->unfinished);
        tmk_unfinished_release(&before);
    } else if (o->fd >= 0 && close(o->fd) < 0) {
        reason = errno;
    }
    free(o->target);
    free(o->temporary);
    return keep && reason != 0 ? complain_of_output(o->path, reason) : 0;
}

int tmk_output_file_write(const char *path, void write_to(FILE *out, const void *arg),
                          const void *arg)
{
    struct tmk_output_file o;
    int status = tmk_output_file_open(&o, path);
    if (status != 0)
        return status;
    int fd = fcntl(o.fd, F_DUPFD_CLOEXEC, 0);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (out) {
        write_to(out, arg);
        status = tmk_close_output(out, path, 0);
    } else {
        status = complain_of_output(path, errno);
        if (fd >= 0)
            close(fd);
    }
    int closed = tmk_output_file_close(&o, status == 0);
    return status ? status : closed;
}
