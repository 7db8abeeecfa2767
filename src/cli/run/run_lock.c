/* SPDX-License-Identifier: MIT */
/* cli/run/run_lock.c - see run_lock.h.
 *
 * A lock file is removed by who holds its lock. So who has just got one may hold the lock of a file
 * that is gone: it looks whether the name still leads there, and tries again. */
#include "cli/run/run_lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOCK_PREFIX ".tidemark-run."

/* Others may hold it for a moment, to look or to clean up: it is busy after 100 ms. MAX_SWEPT
 * bounds what cleaning up after killed commands costs in a large folder. */
enum { MAX_TRIES = 200, MAX_BUSY_TRIES = 20, BUSY_WAIT_NS = 5000000, MAX_SWEPT = 2000 };

/* The lock, without memory of the heap: a signal handler releases it. */
static struct {
    int parent; /* of the folder; -1: nothing is locked */
    int fd;
    char name[NAME_MAX + 1]; /* of the lock file; "": the folder itself is locked */
    char folder[PATH_MAX];
    size_t made_from; /* folders of `folder` longer than this were made by us; 0: none */
} held = {.parent = -1, .fd = -1};

/* ---- folders above ---- */

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Make what is missing above the folder, and note from where on. A folder that cannot be made is
 * noticed by who opens it. */
static void make_parents(void)
{
    char *last = strrchr(held.folder, '/');
    for (char *slash = held.folder + 1; slash < last;) {
        slash += strspn(slash, "/");
        slash += strcspn(slash, "/");
        if (slash > last)
            break;
        *slash = '\0';
        bool made = !is_folder(held.folder) && mkdir(held.folder, 0700) == 0;
        if (made && !held.made_from)
            held.made_from = (size_t)(slash - held.folder);
        *slash = '/';
    }
}

/* Remove the folders that we made and that are empty, the innermost first. */
static void remove_parents(void)
{
    for (char *slash; held.made_from && (slash = strrchr(held.folder, '/')) != NULL;) {
        if ((size_t)(slash - held.folder) < held.made_from)
            break;
        *slash = '\0';
        if (rmdir(held.folder) < 0 && errno != ENOENT)
            break;
    }
    held.made_from = 0;
}

/* ---- the lock ---- */

static bool leads_to(int parent, const char *name, int fd)
{
    struct stat there, ours;
    return fstatat(parent, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &ours) == 0 &&
           there.st_dev == ours.st_dev && there.st_ino == ours.st_ino;
}

static bool is_own_lock(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0 && st.st_uid == geteuid();
}

/* Another user's file says nothing: in a folder that all may write to, anybody could block a name
 * with one. Nobody else can open ours, to lock it. */
static int open_lock(int parent, const char *name, bool create)
{
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int fd = openat(parent, name, flags);
    if (fd < 0 && errno == ENOENT && create)
        return openat(parent, name, O_CREAT | O_EXCL | flags, 0600);
    if (fd >= 0 && !is_own_lock(fd)) {
        close(fd);
        errno = EPERM; /* not of our making */
        fd = -1;
    }
    return fd;
}

/* Remove the lock files that killed commands left behind. */
static void sweep_abandoned(void)
{
    int copy = openat(held.parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    struct dirent *entry;
    if (!dir && copy >= 0)
        close(copy);
    for (int i = 0; dir && i < MAX_SWEPT && (entry = readdir(dir)) != NULL; i++) {
        if (strncmp(entry->d_name, LOCK_PREFIX, sizeof LOCK_PREFIX - 1) != 0 ||
            strcmp(entry->d_name, held.name) == 0)
            continue;
        int fd = open_lock(held.parent, entry->d_name, false);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
            leads_to(held.parent, entry->d_name, fd))
            unlinkat(held.parent, entry->d_name, 0);
        if (fd >= 0)
            close(fd);
    }
    if (dir)
        closedir(dir);
}

/* Try once. TMK_RUN_LOCK_BUSY with errno EAGAIN: try again without waiting. */
static enum tmk_run_lock try_lock(void)
{
    int fd = open_lock(held.parent, held.name, true);
    if (fd < 0 && errno == EEXIST) {
        errno = EAGAIN;
        return TMK_RUN_LOCK_BUSY;
    }
    if (fd < 0)
        return TMK_RUN_LOCK_NONE;
    bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    bool busy = !locked && errno == EWOULDBLOCK;
    if (locked && leads_to(held.parent, held.name, fd)) {
        held.fd = fd;
        return TMK_RUN_LOCK_TAKEN;
    }
    close(fd);
    if (!locked && !busy)
        unlinkat(held.parent, held.name, 0); /* no locks on this file system */
    errno = busy ? EBUSY : EAGAIN;
    return locked || busy ? TMK_RUN_LOCK_BUSY : TMK_RUN_LOCK_NONE;
}

static enum tmk_run_lock lock_file(void)
{
    enum tmk_run_lock got = TMK_RUN_LOCK_NONE;
    for (int i = 0, n_busy = 0; i < MAX_TRIES && n_busy < MAX_BUSY_TRIES; i++) {
        got = try_lock();
        if (got != TMK_RUN_LOCK_BUSY)
            break;
        if (errno == EBUSY) {
            n_busy++;
            nanosleep(&(struct timespec){.tv_nsec = BUSY_WAIT_NS}, NULL);
        }
    }
    return got;
}

/* Lock the folder itself. Nothing can be put beside it, for instance because it is a volume of its
 * own. */
static enum tmk_run_lock lock_folder(void)
{
    int fd = open(held.folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    held.name[0] = '\0';
    if (fd < 0)
        return TMK_RUN_LOCK_NONE;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        held.fd = fd;
        return TMK_RUN_LOCK_TAKEN;
    }
    bool busy = errno == EWOULDBLOCK;
    close(fd);
    return busy ? TMK_RUN_LOCK_BUSY : TMK_RUN_LOCK_NONE;
}

/* Open the folder that contains the run's. */
static bool open_parent(void)
{
    char *last = strrchr(held.folder, '/');
    make_parents();
    *last = '\0';
    held.parent = open(held.folder[0] ? held.folder : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    *last = '/';
    return held.parent >= 0;
}

/* Another command may remove the folder, empty as it is, between our making it and our making
 * something in it. */
static enum tmk_run_lock lock_beside(void)
{
    for (int i = 0; i < MAX_TRIES; i++) {
        enum tmk_run_lock got = open_parent() ? lock_file() : TMK_RUN_LOCK_NONE;
        if (got != TMK_RUN_LOCK_NONE || errno != ENOENT)
            return got;
        if (held.parent >= 0)
            close(held.parent);
        held.parent = -1;
    }
    return TMK_RUN_LOCK_NONE;
}

enum tmk_run_lock tmk_run_lock_take(const char *folder)
{
    const char *slash = strrchr(folder, '/');
    tmk_run_lock_release();
    if (!slash || strlen(folder) >= sizeof held.folder ||
        strlen(slash + 1) + sizeof LOCK_PREFIX > sizeof held.name)
        return TMK_RUN_LOCK_NONE;
    strcpy(held.folder, folder);
    strcpy(held.name, LOCK_PREFIX);
    strcat(held.name, slash + 1);
    enum tmk_run_lock got = lock_beside();
    if (got == TMK_RUN_LOCK_TAKEN)
        sweep_abandoned();
    else if (got == TMK_RUN_LOCK_NONE)
        got = lock_folder();
    if (got == TMK_RUN_LOCK_BUSY)
        tmk_run_lock_release();
    return got;
}

void tmk_run_lock_release(void)
{
    if (held.fd >= 0) {
        if (held.name[0])
            unlinkat(held.parent, held.name, 0);
        flock(held.fd, LOCK_UN); /* a child that was just forked may have it open */
        close(held.fd);
    }
    if (held.parent >= 0)
        close(held.parent);
    held.fd = held.parent = -1;
    remove_parents();
}
