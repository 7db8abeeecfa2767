/* SPDX-License-Identifier: MIT */
/* trace/ring_file.c - see ring_file.h. */
#include "trace/ring_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file_lock.h"
#include "base/text.h"
#include "trace/ring.h"

enum { ALIVE_BYTE = 0, MERGING_BYTE = 1, LOCK_WAIT_NS = 2000000 };

/* ---- locks ---- */

/* The lock is shared: while a ring is being made, two descriptors have it. */
int tmk_ring_file_hold(int fd)
{
    return tmk_file_lock(fd, TMK_LOCK_SHARED, ALIVE_BYTE);
}

int tmk_ring_file_is_held_by_another(int fd)
{
    int taken = tmk_file_lock_is_taken(fd, ALIVE_BYTE);
    return taken < 0 ? TMK_EIO : taken;
}

int tmk_ring_file_is_held(const struct tmk_ring_file *f)
{
    return tmk_ring_file_is_held_by_another(f->fd);
}

int tmk_ring_file_lock(const struct tmk_ring_file *f, uint64_t limit_ns)
{
    uint64_t end = tmk_clock_monotonic_ns() + limit_ns;
    struct stat st;
    while (tmk_file_lock(f->fd, TMK_LOCK_EXCLUSIVE, MERGING_BYTE) < 0) {
        if (errno != EAGAIN && errno != EACCES)
            return TMK_EIO;
        if (tmk_clock_monotonic_ns() >= end)
            return TMK_EBUSY;
        nanosleep(&(struct timespec){.tv_nsec = LOCK_WAIT_NS}, NULL);
    }
    return fstat(f->fd, &st) == 0 && st.st_nlink > 0 ? 0 : TMK_EBUSY; /* merged meanwhile */
}

/* ---- opening ---- */

static bool is_ring_file_name(const char *name)
{
    size_t n = strlen(name);
    return n > 5 && n < TMK_RING_NAME_BYTES && strcmp(name + n - 5, ".ring") == 0 &&
           !strchr(name, '/');
}

/* Opens a plain file for reading and writing if allowed, else for reading. O_NONBLOCK: a FIFO must
 * not block the process. */
static int open_plain_file_in(int folder, const char *name, bool only_own, struct stat *ret_st)
{
    enum { FLAGS = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY };
    if (fstatat(folder, name, ret_st, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    bool own = ret_st->st_uid == geteuid();
    if (only_own && !own) {
        errno = EPERM;
        return -1;
    }
    int fd =
        S_ISREG(ret_st->st_mode) ? openat(folder, name, (own ? O_RDWR : O_RDONLY) | FLAGS) : -1;
    if (fd < 0 && S_ISREG(ret_st->st_mode) && (errno == EACCES || errno == EROFS))
        fd = openat(folder, name, O_RDONLY | FLAGS);
    if (fd >= 0 && fstat(fd, ret_st) == 0 && S_ISREG(ret_st->st_mode))
        return fd;
    if (fd >= 0)
        close(fd);
    if (!S_ISREG(ret_st->st_mode))
        errno = EINVAL;
    return -1;
}

static int open_ring_in(struct tmk_ring_file *ret, int folder, const char *name, bool only_own,
                        struct tmk_error *err)
{
    struct tmk_ring_file f = {.folder = -1, .fd = -1};
    if (!is_ring_file_name(name))
        return tmk_fail(err, TMK_EFORMAT, "%s is not the name of a ring", name);
    strcpy(f.name, name);
    f.fd = open_plain_file_in(folder, name, only_own, &f.st);
    if (f.fd < 0)
        return tmk_fail_os(err, errno == EINVAL ? TMK_EFORMAT : TMK_EIO, errno,
                           "cannot open the ring %s", name);
    f.folder = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    if (f.folder < 0) {
        tmk_ring_file_close(&f);
        return tmk_fail_os(err, TMK_EIO, errno, "cannot open the folder of %s", name);
    }
    *ret = f;
    return 0;
}

int tmk_ring_file_open_in(struct tmk_ring_file *ret, int folder, const char *name,
                          struct tmk_error *err)
{
    return open_ring_in(ret, folder, name, false, err);
}

int tmk_ring_file_open_own_in(struct tmk_ring_file *ret, int folder, const char *name,
                              struct tmk_error *err)
{
    return open_ring_in(ret, folder, name, true, err);
}

/* The folder of `path` as a descriptor, and where its last part begins. */
static int open_folder_of(const char *path, const char **ret_name)
{
    char folder[TMK_RING_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 1;
    if (n >= sizeof folder)
        return -1;
    *ret_name = slash ? slash + 1 : path;
    memcpy(folder, slash ? path : ".", n);
    folder[n] = '\0';
    return open(n ? folder : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int tmk_ring_file_open(struct tmk_ring_file *ret, const char *path, struct tmk_error *err)
{
    const char *name = path;
    int folder = open_folder_of(path, &name);
    if (folder < 0)
        return tmk_fail_os(err, TMK_EIO, errno, "cannot open the folder of %s", path);
    int rc = tmk_ring_file_open_in(ret, folder, name, err);
    close(folder);
    return rc;
}

void tmk_ring_file_close(struct tmk_ring_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    if (f->folder >= 0)
        close(f->folder);
    f->fd = f->folder = -1;
}

int tmk_ring_file_is_held_at(const char *path)
{
    struct tmk_ring_file f = {.folder = -1, .fd = -1};
    struct tmk_error err = {0};
    int rc = tmk_ring_file_open(&f, path, &err);
    if (rc < 0)
        return err.os_error == ENOENT || err.os_error == ENOTDIR ? 0 : rc;
    rc = tmk_ring_file_is_held(&f);
    tmk_ring_file_close(&f);
    return rc;
}

/* ---- finding ---- */

void tmk_ring_folders(struct tmk_ring_folders *ret)
{
    struct tmk_text text;
    ret->n = 0;
    tmk_text_init(&text, ret->of_user, sizeof ret->of_user);
    tmk_text_add(&text, "/run/user/%u", (unsigned)geteuid());
    const char *all[TMK_RING_FOLDERS] = {getenv("TIDEMARK_RING_DIR"), getenv("XDG_RUNTIME_DIR"),
                                         ret->of_user, "/dev/shm"};
    for (unsigned i = 0; i < TMK_RING_FOLDERS; i++) {
        bool seen = !all[i] || *all[i] != '/';
        for (unsigned k = 0; k < ret->n && !seen; k++)
            seen = strcmp(all[i], ret->paths[k]) == 0;
        if (!seen)
            ret->paths[ret->n++] = all[i];
    }
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool tmk_ring_file_is_users_name(const char *name)
{
    char start[32];
    struct tmk_text text;
    tmk_text_init(&text, start, sizeof start);
    tmk_text_add(&text, "tidemark.%u.", (unsigned)geteuid());
    return strncmp(name, start, text.length) == 0;
}

/* Whether the name begins as a ring's does. A user's number follows, which may be another user's:
 * root reads all. */
static bool has_prefix(const char *name)
{
    return strncmp(name, "tidemark.", 9) == 0;
}

static bool is_ring_folder(const struct stat *folder)
{
    struct tmk_ring_folders folders;
    struct stat st;
    tmk_ring_folders(&folders);
    for (unsigned i = 0; i < folders.n; i++)
        if (stat(folders.paths[i], &st) == 0 && is_same_file(folder, &st))
            return true;
    return false;
}

int tmk_ring_file_find(struct tmk_ring_file *ret, const char *ring_path, const char *trace_path,
                       bool own_trace)
{
    const char *name = ring_path, *trace_name;
    int folder = open_folder_of(ring_path, &name);
    int beside = open_folder_of(trace_path, &trace_name);
    struct stat st, st_beside;
    int rc = TMK_EIO;
    bool is_there = folder >= 0 && fstat(folder, &st) == 0;
    bool is_beside =
        is_there && beside >= 0 && fstat(beside, &st_beside) == 0 && is_same_file(&st, &st_beside);
    if (is_beside || (is_there && has_prefix(name) && (own_trace || is_ring_folder(&st))))
        rc = tmk_ring_file_open_in(ret, folder, name, NULL);
    if (rc < 0 && beside >= 0)
        rc = tmk_ring_file_open_in(ret, beside, name, NULL);
    if (folder >= 0)
        close(folder);
    if (beside >= 0)
        close(beside);
    return rc == 0;
}

/* ---- content ---- */

bool tmk_ring_file_header(const struct tmk_ring_file *f, struct tmk_ring_header *ret)
{
    struct tmk_ring_header h;
    if (pread(f->fd, &h, sizeof h, 0) != (ssize_t)sizeof h ||
        memcmp(h.magic, TMK_RING_MAGIC, sizeof h.magic) != 0 || h.trace_path[0] != '/' ||
        h.n_pages > TMK_RING_PAGES_LIMIT)
        return false;
    h.trace_path[sizeof h.trace_path - 1] = '\0';
    *ret = h;
    return true;
}

bool tmk_ring_file_uses_page(const struct tmk_ring_file *f, uint32_t i)
{
    uint32_t state = TMK_PAGE_FREE;
    return pread(f->fd, &state, sizeof state, (off_t)tmk_ring_bytes(i)) == (ssize_t)sizeof state &&
           state != TMK_PAGE_FREE;
}

uint32_t tmk_ring_file_n_used(const struct tmk_ring_file *f, uint32_t n_pages)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_pages; i++)
        n += tmk_ring_file_uses_page(f, i);
    return n;
}

/* ---- removing ---- */

bool tmk_ring_file_is_own(const struct tmk_ring_file *f)
{
    return f->st.st_uid == geteuid();
}

bool tmk_ring_file_remove(const struct tmk_ring_file *f)
{
    struct stat st;
    return tmk_ring_file_is_own(f) && fstatat(f->folder, f->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(st.st_mode) && is_same_file(&st, &f->st) && unlinkat(f->folder, f->name, 0) == 0;
}
