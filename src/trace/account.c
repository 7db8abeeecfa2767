/* SPDX-License-Identifier: MIT */
/* trace/account.c - see account.h. */
#include "trace/account.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file_lock.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/region.h"
#include "base/text.h"
#include "trace/disk_share.h"
#include "trace/layout.h"
#include "trace/ring.h"
#include "trace/ring_file.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum {
    TMPFS_KIND = 0x01021994, /* of struct statfs */
    SHARE = 10,
    OPEN_TRIES = 1600, /* 0.8 s: whoever begins the count looks at the run's rings */
    OPEN_WAIT_NS = 500000,
};
static const uint64_t memory_most = 256ull << 20;
static const uint64_t memory_enough = 40ull << 20; /* free in a folder for rings */

/* ---- name ---- */

/* A folder's path less slashes at its end. */
static size_t folder_length(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    return n;
}

static void make_account_name(char *name, const char *run_folder)
{
    const char *boot = tmk_boot_id();
    struct tmk_text text;
    uint64_t hash = tmk_hash_mix(tmk_hash_bytes(boot, strlen(boot)),
                                 tmk_hash_bytes(run_folder, folder_length(run_folder)));
    tmk_text_init(&text, name, TMK_ACCOUNT_NAME_BYTES);
    tmk_text_add(&text, "tidemark.%u.", (unsigned)geteuid());
    tmk_text_hex(&text, hash);
    tmk_text_string(&text, ".account");
}

bool tmk_account_is_name(const char *name)
{
    size_t n = strlen(name);
    return n > 17 && n < TMK_ACCOUNT_NAME_BYTES && strncmp(name, "tidemark.", 9) == 0 &&
           strcmp(name + n - 8, ".account") == 0;
}

/* ---- opening ---- */

/* A plain file of the caller's own, under one name: neither removed nor a link to something else.
 */
static bool is_own_account_file(const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_nlink == 1;
}

/* Checks an opened file: 0, or an errno; EAGAIN when it was removed after it had been opened. */
static int judge_file(int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return errno;
    return is_own_account_file(&st) ? 0 : st.st_nlink == 0 ? EAGAIN : EPERM;
}

/* The free bytes of a folder's file system. UINT64_MAX when they are unknown: the folder may have
 * been moved. */
static uint64_t free_bytes_in_folder(const char *folder)
{
    struct statvfs fs;
    return statvfs(folder, &fs) == 0 ? (uint64_t)fs.f_bavail * fs.f_frsize : UINT64_MAX;
}

/* The bytes that the ring `name` counts, if its trace is in the run folder. */
static uint64_t bytes_of_ring(int folder, const char *name, const char *run_folder)
{
    struct tmk_ring_header h;
    struct tmk_ring_file f;
    size_t n = folder_length(run_folder);
    if (!tmk_ring_file_is_users_name(name) || tmk_ring_file_open_own_in(&f, folder, name, NULL) < 0)
        return 0;
    bool is_of_run = tmk_ring_file_header(&f, &h) && strncmp(h.trace_path, run_folder, n) == 0 &&
                     h.trace_path[n] == '/';
    tmk_ring_file_close(&f);
    return is_of_run ? tmk_ring_bytes(h.n_pages) : 0;
}

/* The bytes of rings that killed processes have left in the folder. */
static uint64_t bytes_of_rings(const char *folder, const char *run_folder)
{
    struct tmk_folder f;
    uint64_t bytes = 0;
    if (tmk_folder_open(&f, folder) == 0)
        for (const char *name; (name = tmk_folder_next(&f)) != NULL;)
            bytes += bytes_of_ring(f.fd, name, run_folder);
    tmk_folder_close(&f);
    return bytes;
}

static struct tmk_account_page *map_page(int fd)
{
    void *base = tmk_map_unforked(sizeof(struct tmk_account_page), MAP_SHARED, fd);
    if (base && mprotect(base, sizeof(struct tmk_account_page), PROT_READ | PROT_WRITE) < 0) {
        munmap(base, sizeof(struct tmk_account_page));
        return NULL;
    }
    return base;
}

_Static_assert(sizeof(struct tmk_account_page) <= TMK_ACCOUNT_BYTES, "it fits its file");

/* Allocates memory for the page, so that writing to it cannot fail: 4 KiB, on any tmpfs. */
static int touch_page(struct tmk_account_page *page, int fd)
{
    madvise(page, sizeof *page, MADV_NOHUGEPAGE);
    if (madvise(page, sizeof *page, MADV_POPULATE_WRITE) == 0)
        return 0;
    return errno == EINVAL ? posix_fallocate(fd, 0, TMK_ACCOUNT_BYTES) : ENOSPC; /* before 5.14 */
}

/* Begins a new count. Returns 0 or an errno. The caller is alone with the file. The page is written
 * through a mapping, as in all later steps: a seccomp filter may refuse calls that nobody else
 * needs. */
static int begin_count(int fd, const char *folder, const char *run_folder)
{
    struct tmk_account_page fresh = {
        .memory_used = bytes_of_rings(folder, run_folder),
    };
    uint64_t free = free_bytes_in_folder(folder), limit = free == UINT64_MAX ? 0 : free / SHARE;
    memcpy(fresh.magic, TMK_ACCOUNT_MAGIC, sizeof fresh.magic);
    fresh.memory_limit = limit < memory_most ? limit : memory_most;
    if (ftruncate(fd, TMK_ACCOUNT_BYTES) < 0)
        return errno;
    struct tmk_account_page *page = map_page(fd);
    if (!page)
        return ENOMEM;
    int error = touch_page(page, fd);
    if (error == 0)
        memcpy(page, &fresh, sizeof fresh);
    munmap(page, sizeof *page);
    return error;
}

/* Opens the file, or makes it. Returns -1 with errno EAGAIN when another process has just removed
 * it. */
static int open_or_make(const char *path)
{
    enum { FLAGS = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK };
    int fd = open(path, FLAGS | O_CREAT | O_EXCL, 0600);
    if (fd >= 0 || errno != EEXIST)
        return fd;
    fd = open(path, FLAGS);
    if (fd < 0 && errno == ENOENT)
        errno = EAGAIN;
    return fd;
}

/* Takes the shared lock, and begins a count when the process is alone. Returns 0 or an errno;
 * EAGAIN when another process is about to begin the count, or has removed the file. */
static int lock_and_count(int fd, const char *folder, const char *run_folder, const char *path)
{
    int error = judge_file(fd);
    if (error == 0 && tmk_file_lock(fd, TMK_LOCK_EXCLUSIVE, 0) == 0) {
        error = judge_file(fd);
        if (error == 0) {
            error = begin_count(fd, folder, run_folder);
            if (error)
                unlink(path);
        }
    }
    if (error == 0 && tmk_file_lock(fd, TMK_LOCK_SHARED, 0) < 0)
        error = errno == EACCES ? EAGAIN : errno;
    return error ? error : judge_file(fd);
}

/* Opens the file with a shared lock on it; a process that is alone with it begins a new count.
 * Returns the descriptor, or -1 and errno. */
static int open_account_locked(const char *folder, const char *run_folder, const char *path)
{
    int fd = open_or_make(path);
    if (fd < 0)
        return -1;
    int error = lock_and_count(fd, folder, run_folder, path);
    if (error == 0)
        return fd;
    close(fd);
    errno = error;
    return -1;
}

static bool add_account_path(char *path, size_t size, const struct tmk_account *a)
{
    struct tmk_text text;
    tmk_text_init(&text, path, size);
    tmk_text_add(&text, "%s/%s", a->folder, a->name);
    return !text.cut;
}

static bool is_tmpfs_folder(const char *folder)
{
    struct statfs fs;
    return folder && *folder == '/' && statfs(folder, &fs) == 0 && fs.f_type == TMPFS_KIND;
}

static int open_account_in(struct tmk_account *ret, const char *folder, const char *run_folder,
                           struct tmk_error *err)
{
    struct tmk_account a = {0};
    char path[TMK_ACCOUNT_PATH_BYTES];
    if (strlen(folder) >= sizeof a.folder)
        return tmk_fail(err, TMK_EINVAL, "the folder's name is too long: %s", folder);
    strcpy(a.folder, folder);
    make_account_name(a.name, run_folder);
    int fd = -1;
    for (int try = 0; add_account_path(path, sizeof path, &a) && fd < 0 && try < OPEN_TRIES;
         try++) {
        fd = open_account_locked(folder, run_folder, path);
        if (fd < 0 && errno != EAGAIN && errno != EINTR)
            break;
        if (fd < 0)
            nanosleep(&(struct timespec){.tv_nsec = OPEN_WAIT_NS}, NULL);
    }
    if (fd < 0)
        return tmk_fail_os(err, errno == EAGAIN ? TMK_EBUSY : TMK_EIO, errno,
                           "cannot open the account %s", path);
    a.page = map_page(fd);
    if (!a.page) {
        close(fd);
        return tmk_fail(err, TMK_ENOMEM, "cannot map the account %s", path);
    }
    if (is_tmpfs_folder(folder)) {
        close(fd); /* the mapping keeps the lock */
    } else {
        a.has_lock_fd = true; /* perhaps it does not: see ring_file.h */
        a.lock_fd = fd;
    }
    *ret = a;
    return 0;
}

enum presence { ABSENT, PRESENT, TAKEN };

/* Whether the folder has the run's account. TAKEN: a file of that name is not the caller's account.
 * Another user may have put it there. */
static enum presence look_for_account(const char *folder, const char *run_folder)
{
    struct tmk_account a = {0};
    char path[TMK_ACCOUNT_PATH_BYTES];
    struct stat st;
    if (strlen(folder) >= sizeof a.folder)
        return ABSENT;
    strcpy(a.folder, folder);
    make_account_name(a.name, run_folder);
    if (!add_account_path(path, sizeof path, &a) || lstat(path, &st) < 0)
        return ABSENT;
    return is_own_account_file(&st) ? PRESENT : TAKEN;
}

static bool exists_in(const char *folder, const char *run_folder)
{
    return look_for_account(folder, run_folder) == PRESENT;
}

/* Chooses the folder where the run has its account already; else one with room; else any tmpfs;
 * else NULL. */
static const char *choose_account_folder(const char *const *folders, unsigned n,
                                         const char *run_folder)
{
    const char *roomy = NULL, *any = NULL;
    for (unsigned i = 0; i < n; i++) {
        if (!is_tmpfs_folder(folders[i]) || access(folders[i], W_OK | X_OK) < 0)
            continue;
        enum presence presence = look_for_account(folders[i], run_folder);
        if (presence == PRESENT)
            return folders[i];
        if (presence == TAKEN)
            continue;
        if (!any)
            any = folders[i];
        uint64_t free = free_bytes_in_folder(folders[i]);
        if (!roomy && free != UINT64_MAX && free >= memory_enough)
            roomy = folders[i];
    }
    return roomy ? roomy : any;
}

int tmk_account_open(struct tmk_account *ret, const char *const *folders, unsigned n_folders,
                     const char *run_folder, struct tmk_error *err)
{
    const char *folder = choose_account_folder(folders, n_folders, run_folder);
    int rc = folder ? open_account_in(ret, folder, run_folder, err) : TMK_EIO;
    bool on_tmpfs = rc == 0;
    if (rc < 0 && rc != TMK_EBUSY) /* else it is there, and a second one would count apart */
        rc = open_account_in(ret, run_folder, run_folder, err);
    if (rc == 0)
        ret->on_tmpfs = on_tmpfs;
    return rc;
}

/* Opens and locks an own account that no process has open; -1 for any other. */
static int open_idle(int folder, const char *name)
{
    struct stat st;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !is_own_account_file(&st))
        return -1;
    int fd = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || (judge_file(fd) == 0 && tmk_file_lock(fd, TMK_LOCK_EXCLUSIVE, 0) == 0 &&
                   judge_file(fd) == 0))
        return fd;
    close(fd);
    return -1;
}

bool tmk_account_is_idle(int folder, const char *name)
{
    int fd = open_idle(folder, name);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

bool tmk_account_remove_idle(int folder, const char *name)
{
    int fd = open_idle(folder, name);
    bool gone = fd >= 0 && unlinkat(folder, name, 0) == 0;
    if (fd >= 0)
        close(fd);
    return gone;
}

static void remove_if_idle(const struct tmk_account *a)
{
    int folder = open(a->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return;
    tmk_account_remove_idle(folder, a->name);
    close(folder);
}

void tmk_account_leave_unlocked(struct tmk_account *a)
{
    if (a->has_lock_fd)
        close(a->lock_fd);
    a->has_lock_fd = false;
}

void tmk_account_close(struct tmk_account *a)
{
    if (!a->page)
        return;
    munmap(a->page, sizeof *a->page);
    a->page = NULL;
    tmk_account_leave_unlocked(a);
    remove_if_idle(a);
}

/* ---- memory ---- */

bool tmk_account_take_memory(struct tmk_account *a, uint64_t held, uint64_t bytes)
{
    struct tmk_account_page *p = a->page;
    if (!p || held + bytes > p->memory_limit / 2)
        return false;
    uint64_t used = atomic_load(&p->memory_used);
    do
        if (used + bytes > p->memory_limit)
            return false;
    while (!atomic_compare_exchange_weak(&p->memory_used, &used, used + bytes));
    if (held == 0)
        atomic_fetch_add(&p->n_rings, 1);
    return true;
}

static void give_bytes_back(_Atomic uint64_t *used, uint64_t bytes)
{
    uint64_t now = atomic_load(used);
    while (!atomic_compare_exchange_weak(used, &now, now > bytes ? now - bytes : 0))
        ;
}

void tmk_account_give_memory(struct tmk_account *a, uint64_t bytes)
{
    if (a->page)
        give_bytes_back(&a->page->memory_used, bytes);
}

/* ---- processes that are not recorded ---- */

bool tmk_account_count_refusal(struct tmk_account *a, enum tmk_stop reason)
{
    if (!a->page || (unsigned)reason >= TMK_ACCOUNT_REASONS)
        return false;
    atomic_fetch_add(&a->page->n_refused[reason], 1);
    return true;
}

bool tmk_account_count_refusal_in(const char *const *folders, unsigned n_folders,
                                  const char *run_folder, enum tmk_stop reason)
{
    struct tmk_account a = {0};
    bool is_counted = false;
    for (unsigned i = 0; i < n_folders && !is_counted; i++)
        if (folders[i] && *folders[i] && exists_in(folders[i], run_folder) &&
            open_account_in(&a, folders[i], run_folder, NULL) == 0) {
            is_counted = tmk_account_count_refusal(&a, reason);
            tmk_account_close(&a);
        }
    return is_counted;
}

uint32_t tmk_account_take_refusals(struct tmk_account *a, enum tmk_stop reason)
{
    return a->page && (unsigned)reason < TMK_ACCOUNT_REASONS
               ? atomic_exchange(&a->page->n_refused[reason], 0)
               : 0;
}

/* ---- dead processes ---- */

bool tmk_account_may_sweep(struct tmk_account *a, uint64_t every_ns)
{
    uint64_t now = tmk_clock_monotonic_ns();
    uint64_t last = a->page ? atomic_load(&a->page->swept_ns) : 0;
    return a->page && now - last >= every_ns &&
           atomic_compare_exchange_strong(&a->page->swept_ns, &last, now);
}

static const char *find_account(const char *run_folder, struct tmk_ring_folders *folders)
{
    tmk_ring_folders(folders);
    for (unsigned i = 0; i < folders->n; i++)
        if (exists_in(folders->paths[i], run_folder))
            return folders->paths[i];
    return exists_in(run_folder, run_folder) ? run_folder : NULL;
}

void tmk_account_return(const char *trace_path, uint64_t bytes)
{
    char run_folder[TMK_ACCOUNT_PATH_BYTES];
    struct tmk_account a = {0};
    struct tmk_ring_folders folders;
    const char *slash = strrchr(trace_path, '/');
    size_t n = slash ? (size_t)(slash - trace_path) : 0;
    if (n == 0 || n >= sizeof run_folder)
        return;
    memcpy(run_folder, trace_path, n);
    run_folder[n] = '\0';
    const char *found = find_account(run_folder, &folders);
    if (found && open_account_in(&a, found, run_folder, NULL) == 0)
        tmk_account_give_memory(&a, bytes);
    tmk_account_close(&a);
}

void tmk_account_drop_idle(const char *run_folder)
{
    struct tmk_account a = {0};
    struct tmk_ring_folders folders;
    const char *found = find_account(run_folder, &folders);
    if (!found || strlen(found) >= sizeof a.folder)
        return;
    strcpy(a.folder, found);
    make_account_name(a.name, run_folder);
    remove_if_idle(&a);
}
