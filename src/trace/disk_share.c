/* SPDX-License-Identifier: MIT */
/* trace/disk_share.c - see disk_share.h. */
#include "trace/disk_share.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file_lock.h"
#include "base/folder.h"
#include "base/text.h"

enum {
    SHARE = 10,
    LOCK_BYTE = 0,    /* of the whole count; those of the slots follow */
    LOCK_TRIES = 100, /* 50 ms: the owner of the lock reads and writes 32 bytes */
    LOCK_WAIT_NS = 500000,
    MOST_FILES = 10000, /* of a run that are looked at */
    N_SLOTS = 508,      /* with the count a block of a disk */
};
static const uint64_t recount_every_ns = 1000000000u;

#define MAGIC "TMKDISK1"

/* What the file begins with; the slots follow. Only processes of one machine and one user share it,
 * so it is not part of the trace's format. */
struct disk_count {
    char magic[8];
    uint64_t used_bytes;
    uint64_t recounted_ns; /* CLOCK_MONOTONIC */
    uint64_t n_nodes;      /* that share the disk */
};

enum change { LOOK, TAKE, PUT, GIVE };

/* ---- the file ---- */

static bool is_count_open(const struct tmk_disk_share *s)
{
    return s->path[0] != '\0';
}

/* Forked children have it from their parent. */
const char *tmk_boot_id(void)
{
    static char id[TMK_BOOT_ID_BYTES];
    static _Atomic bool is_known;
    char text[64], digits[TMK_BOOT_ID_BYTES] = "";
    if (atomic_load(&is_known))
        return id;
    size_t n = tmk_fd_read_small("/proc/sys/kernel/random/boot_id", text, sizeof text), at = 0;
    for (size_t i = 0; i < n && at < TMK_BOOT_ID_BYTES - 1; i++)
        if ((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f'))
            digits[at++] = text[i];
    while (at < TMK_BOOT_ID_BYTES - 1)
        digits[at++] = '0';
    memcpy(id, digits, sizeof id); /* a thread that does so at the same time writes the same */
    atomic_store(&is_known, true);
    return id;
}

static bool add_count_path(char *path, size_t size, const char *run_folder)
{
    struct tmk_text text;
    tmk_text_init(&text, path, size);
    tmk_text_add(&text, "%s/tidemark.%s.disk", run_folder, tmk_boot_id());
    return !text.cut;
}

static bool is_count_file(const struct tmk_disk_share *s, int fd)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == s->device && st.st_ino == s->inode;
}

/* Makes sure that the descriptor still is the count: the program may have closed the number, or
 * opened another file under it. */
static bool check_count_fd(struct tmk_disk_share *s)
{
    if (is_count_file(s, s->fd))
        return true;
    s->slot = 0;
    s->fd = tmk_fd_raise(open(s->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (is_count_file(s, s->fd))
        return true;
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
    return false;
}

static bool is_own_count_file(const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_nlink == 1;
}

int tmk_disk_share_open(struct tmk_disk_share *ret, const char *run_folder, uint32_t n_nodes,
                        struct tmk_error *err)
{
    enum { FLAGS = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK };
    struct tmk_disk_share s = {.fd = -1, .n_nodes = n_nodes};
    struct stat st;
    if (strlen(run_folder) >= sizeof s.folder || !add_count_path(s.path, sizeof s.path, run_folder))
        return tmk_fail(err, TMK_EINVAL, "the folder's name is too long: %s", run_folder);
    strcpy(s.folder, run_folder);
    s.fd = tmk_fd_raise(open(s.path, FLAGS | O_CREAT, 0600));
    if (s.fd < 0)
        return tmk_fail_os(err, TMK_EIO, errno, "cannot open %s", s.path);
    if (fstat(s.fd, &st) < 0 || !is_own_count_file(&st)) {
        close(s.fd);
        return tmk_fail_os(err, TMK_EIO, EPERM, "%s is not a file of tidemark's", s.path);
    }
    s.device = st.st_dev;
    s.inode = st.st_ino;
    *ret = s;
    return 0;
}

void tmk_disk_share_close(struct tmk_disk_share *s)
{
    if (is_count_open(s) && is_count_file(s, s->fd))
        close(s->fd);
    *s = (struct tmk_disk_share){.fd = -1};
}

void tmk_disk_share_remove(const char *run_folder)
{
    char path[TMK_DISK_SHARE_PATH_BYTES];
    struct stat st;
    if (add_count_path(path, sizeof path, run_folder) && lstat(path, &st) == 0 &&
        is_own_count_file(&st))
        unlink(path);
}

/* ---- slots ---- */

/* A process that finds none, or whose file system has no such locks, is counted without: after a
 * recount its next write is not in the count until it is in the file. */
static void claim_slot(struct tmk_disk_share *s)
{
    if (s->slot > 0 || !tmk_file_lock_is_by_byte(s->fd))
        return;
    for (unsigned i = 1; i <= N_SLOTS && s->slot == 0; i++)
        if (tmk_file_lock(s->fd, TMK_LOCK_EXCLUSIVE, LOCK_BYTE + (int)i) == 0)
            s->slot = i;
}

static off_t slot_offset(unsigned slot)
{
    return (off_t)(sizeof(struct disk_count) + (slot - 1) * sizeof(uint64_t));
}

static void set_ahead(struct tmk_disk_share *s, uint64_t bytes)
{
    struct iovec part = {.iov_base = &s->ahead_bytes, .iov_len = sizeof s->ahead_bytes};
    s->ahead_bytes = bytes;
    if (s->slot == 0 || pwritev(s->fd, &part, 1, slot_offset(s->slot)) == sizeof s->ahead_bytes)
        return;
    tmk_file_unlock(s->fd, LOCK_BYTE + (int)s->slot);
    s->slot = 0;
}

static void change_ahead(struct tmk_disk_share *s, enum change change, uint64_t bytes)
{
    if (change == TAKE) {
        claim_slot(s);
        set_ahead(s, bytes);
    } else if (change == GIVE && s->ahead_bytes > 0) {
        set_ahead(s, s->ahead_bytes > bytes ? s->ahead_bytes - bytes : 0);
    }
}

/* What other living processes have taken and not written yet. */
static uint64_t bytes_ahead_of_files(const struct tmk_disk_share *s)
{
    uint64_t slots[N_SLOTS], bytes = 0;
    ssize_t n = pread(s->fd, slots, sizeof slots, slot_offset(1));
    if (n <= 0 || !tmk_file_lock_is_by_byte(s->fd))
        return 0;
    for (unsigned i = 1; i <= (size_t)n / sizeof slots[0]; i++)
        if (i != s->slot && slots[i - 1] > 0 &&
            tmk_file_lock_is_taken(s->fd, LOCK_BYTE + (int)i) > 0)
            bytes += slots[i - 1];
    return bytes;
}

/* ---- the count ---- */

/* The bytes on the disk of the run's files. UINT64_MAX when the run folder was moved and has
 * another name now. */
static uint64_t bytes_of_run(const struct tmk_disk_share *s)
{
    struct tmk_folder f;
    struct stat st;
    uint64_t bytes = 0, n = 0;
    if (lstat(s->path, &st) < 0 || st.st_ino != s->inode || st.st_dev != s->device)
        return UINT64_MAX;
    if (tmk_folder_open(&f, s->folder) == 0)
        for (const char *name; n++ < MOST_FILES && (name = tmk_folder_next(&f)) != NULL;)
            if (fstatat(f.fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
                bytes += (uint64_t)st.st_blocks * 512;
    tmk_folder_close(&f);
    return bytes;
}

/* Takes the count again from the run's files and from what is about to be written, unless other
 * nodes have files in the folder too: these cannot be told apart. The slots are read first: what is
 * written meanwhile counts twice, until the next time, and not never. */
static void recount_run_bytes(const struct tmk_disk_share *s, struct disk_count *c)
{
    uint64_t ahead = bytes_ahead_of_files(s);
    uint64_t bytes = c->n_nodes == 1 ? bytes_of_run(s) : UINT64_MAX;
    if (bytes != UINT64_MAX)
        c->used_bytes = bytes + ahead;
    c->recounted_ns = tmk_clock_monotonic_ns();
}

static bool lock_count(struct tmk_disk_share *s)
{
    for (int try = 0; try < LOCK_TRIES; try++) {
        if (tmk_file_lock(s->fd, TMK_LOCK_EXCLUSIVE, LOCK_BYTE) == 0)
            return true;
        if (errno != EAGAIN && errno != EACCES && errno != EINTR)
            return errno == ENOLCK || errno == EOPNOTSUPP; /* no locks here: nearly right */
        nanosleep(&(struct timespec){.tv_nsec = LOCK_WAIT_NS}, NULL);
    }
    return false;
}

static void read_count(const struct tmk_disk_share *s, struct disk_count *ret)
{
    bool is_new = pread(s->fd, ret, sizeof *ret, 0) != (ssize_t)sizeof *ret ||
                  memcmp(ret->magic, MAGIC, sizeof ret->magic) != 0;
    if (is_new)
        *ret = (struct disk_count){.n_nodes = 1};
    if (s->n_nodes > 0)
        ret->n_nodes = s->n_nodes;
    memcpy(ret->magic, MAGIC, sizeof ret->magic);
    if (is_new)
        recount_run_bytes(s, ret);
}

static bool write_count(const struct tmk_disk_share *s, const struct disk_count *c)
{
    struct iovec part = {.iov_base = (void *)(uintptr_t)c, .iov_len = sizeof *c};
    return pwritev(s->fd, &part, 1, 0) == (ssize_t)sizeof *c;
}

static uint64_t left_of(struct tmk_disk_share *s, const struct disk_count *c)
{
    struct statvfs fs;
    if (fstatvfs(s->fd, &fs) < 0)
        return s->left_bytes;
    uint64_t whole = (uint64_t)fs.f_bavail * fs.f_frsize + c->used_bytes;
    uint64_t share = whole / SHARE / (c->n_nodes ? c->n_nodes : 1);
    return share > c->used_bytes ? share - c->used_bytes : 0;
}

/* ---- asking ---- */

static bool change_locked(struct tmk_disk_share *s, enum change change, uint64_t bytes,
                          struct disk_count *c)
{
    read_count(s, c);
    s->left_bytes = left_of(s, c);
    if (change == TAKE && s->left_bytes < bytes &&
        tmk_clock_monotonic_ns() - c->recounted_ns >= recount_every_ns) {
        recount_run_bytes(s, c);
        s->left_bytes = left_of(s, c);
    }
    bool allowed = change != TAKE || bytes <= s->left_bytes;
    if (allowed && (change == TAKE || change == PUT))
        c->used_bytes += bytes;
    if (change == GIVE)
        c->used_bytes -= bytes < c->used_bytes ? bytes : c->used_bytes;
    bool is_counted = change == LOOK || write_count(s, c);
    if (is_counted && allowed)
        change_ahead(s, change, bytes);
    if (!allowed)
        errno = ENOBUFS;
    return is_counted && allowed;
}

/* Where the count is lost, the process goes on with the bytes that were left then. */
static bool change_alone(struct tmk_disk_share *s, enum change change, uint64_t bytes)
{
    if (change == TAKE && bytes > s->left_bytes) {
        errno = ENOBUFS;
        return false;
    }
    if (change == TAKE)
        s->left_bytes -= bytes;
    if (change == GIVE)
        s->left_bytes += bytes;
    return true;
}

static bool change_count(struct tmk_disk_share *s, enum change change, uint64_t bytes,
                         struct disk_count *ret)
{
    if (!check_count_fd(s) || !lock_count(s))
        return change_alone(s, change, bytes);
    bool done = change_locked(s, change, bytes, ret);
    int os_error = errno;
    tmk_file_unlock(s->fd, LOCK_BYTE);
    errno = os_error;
    return done;
}

bool tmk_disk_share_take(struct tmk_disk_share *s, uint64_t bytes)
{
    struct disk_count c = {0};
    return is_count_open(s) && change_count(s, TAKE, bytes, &c);
}

void tmk_disk_share_put(struct tmk_disk_share *s, uint64_t bytes)
{
    struct disk_count c = {0};
    if (is_count_open(s) && bytes > 0)
        change_count(s, PUT, bytes, &c);
}

void tmk_disk_share_give(struct tmk_disk_share *s, uint64_t bytes)
{
    struct disk_count c = {0};
    if (is_count_open(s) && bytes > 0)
        change_count(s, GIVE, bytes, &c);
}

uint64_t tmk_disk_share_left(struct tmk_disk_share *s)
{
    struct disk_count c = {0};
    if (is_count_open(s))
        change_count(s, LOOK, 0, &c);
    return s->left_bytes;
}

uint64_t tmk_disk_share_used(struct tmk_disk_share *s)
{
    struct disk_count c = {0};
    if (is_count_open(s))
        change_count(s, LOOK, 0, &c);
    return c.used_bytes;
}
