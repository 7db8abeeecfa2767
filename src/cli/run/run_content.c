/* SPDX-License-Identifier: MIT */
/* cli/run/run_content.c - see run_content.h.
 *
 * A folder is a run if all that is in it could be ours: traces, rings (where there is no tmpfs for
 * them) and files that a run keeps for itself. One other file, and it is somebody's folder.
 *
 * It is living when a ring of its traces is held, a trace without a ring is locked, or a file of
 * its own is. Of a trace that has not been closed and whose ring is not to be seen from here
 * (another machine, a container with a /dev/shm of its own) nobody can tell; it counts as living
 * while it is being written. */
#include "cli/run/run_content.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file_lock.h"
#include "cli/output/xalloc.h"
#include "kit/kernel_files.h"
#include "kit/language.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/refusals.h"
#include "trace/ring_file.h"

/* A trace that is being written changes every four seconds, if anything happens. */
enum { FRESH_S = 60, SHOWN_NAME_BYTES = 100 };

/* Files that a run has beside its traces: how their names begin and end. All are named here, but
 * for the list of processes that were not recorded (trace/refusals.h). */
static const struct {
    const char *start, *end;
} own_files[] = {
    {"tidemark.", ".ring"},      /* where there is no tmpfs */
    {"tidemark.", ".ring.part"}, /* one that was being moved here when its mover was killed */
    {"tidemark.", ".account"},   /* no tmpfs: what the processes of the run may take together */
    {"tidemark.", ".disk"},      /* how much of the disk they have */
    {".tidemark", ""},           /* whatever else it keeps for itself */
};

struct content_look {
    const char *folder;
    int fd; /* of it */
    unsigned n_ours;
    bool is_living, is_foreign;
    bool is_named; /* the text says which process records */
    char *text;
};

__attribute__((format(printf, 2, 3))) static void tell_content(struct content_look *l,
                                                               const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(l->text, TMK_RUN_CONTENT_TEXT_BYTES, _(format), args);
    va_end(args);
}

static bool name_ends_in(const char *name, const char *suffix)
{
    size_t n = strlen(name), k = strlen(suffix);
    return n > k && strcmp(name + n - k, suffix) == 0;
}

/* ---- files of a run ---- */

static bool is_file_own(const char *name)
{
    bool found = false;
    for (size_t i = 0; i < sizeof own_files / sizeof own_files[0]; i++)
        found |= strncmp(name, own_files[i].start, strlen(own_files[i].start)) == 0 &&
                 name_ends_in(name, own_files[i].end);
    return found;
}

/* Returns whether a file is a list of refusals: it has lines as we write them, or nothing yet.
 * Anybody may have a file of that name. */
static bool is_list_of_refused(const struct content_look *l, const char *name,
                               const struct stat *st)
{
    struct tmk_refusal first;
    return strcmp(name, "refused") == 0 &&
           (st->st_size == 0 || tmk_refusals_read(l->folder, &first, 1) == 1);
}

/* Returns whether a file begins as a trace does, or is empty: its process was killed before it
 * could begin. */
static bool is_trace_file(const struct content_look *l, const char *name)
{
    char magic[sizeof TMK_FILE_MAGIC - 1];
    int fd = openat(l->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t got = fd >= 0 ? pread(fd, magic, sizeof magic, 0) : -1;
    if (fd >= 0)
        close(fd);
    return got == 0 ||
           (got == (ssize_t)sizeof magic && memcmp(magic, TMK_FILE_MAGIC, sizeof magic) == 0);
}

static bool is_file_of_run(const struct content_look *l, const char *name)
{
    struct stat st;
    if (fstatat(l->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT; /* it has just gone */
    if (!S_ISREG(st.st_mode))
        return false;
    return is_file_own(name) || is_list_of_refused(l, name, &st) ||
           ((name_ends_in(name, ".trace") || name_ends_in(name, ".trace.part")) &&
            is_trace_file(l, name));
}

/* ---- is somebody recording? ---- */

/* Returns whether anybody holds a lock of either kind. */
static bool is_locked(const struct content_look *l, const char *name)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = openat(l->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool locked = (fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK) ||
                  (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK);
    close(fd);
    return locked;
}

static bool is_same_boot(const struct tmk_reader *r)
{
    char boot[64];
    const char *then = tmk_reader_info(r, "boot_id");
    if (!then || tmk_kernel_file_read(boot, sizeof boot, "/proc/sys/kernel/random/boot_id") < 0)
        return false;
    boot[strcspn(boot, "\n")] = '\0';
    return strcmp(boot, then) == 0;
}

static bool is_same_host(const struct tmk_reader *r)
{
    char host[256] = "";
    const char *then = tmk_reader_info(r, "host");
    return then && gethostname(host, sizeof host - 1) == 0 && strcmp(host, then) == 0;
}

static bool is_fresh_trace(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && time(NULL) - st.st_mtime < FRESH_S;
}

static bool is_process(uint64_t pid)
{
    return pid > 0 && pid <= INT32_MAX && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

/* A trace that was not closed, and no lock that we could look at says whether its process lives. It
 * may be on another machine, or in a container, which may have the host name of this one and
 * processes numbered anew: that there is none of its number here says nothing. */
static bool may_be_recorded(const struct tmk_reader *r, const char *path)
{
    uint64_t pid = 0;
    (void)tmk_reader_info_u64(r, "pid", &pid);
    return is_fresh_trace(path) || (is_same_host(r) && is_same_boot(r) && is_process(pid));
}

/* Other files than traces say that somebody records; who it is, a trace that is read later may. */
static void tell_recorded(struct content_look *l, const char *text)
{
    l->is_living = true;
    tell_content(l, "%s", text);
}

static void tell_living(struct content_look *l, const struct tmk_reader *r)
{
    uint64_t pid = 0;
    (void)tmk_reader_info_u64(r, "pid", &pid);
    l->is_living = l->is_named = true;
    if (is_same_host(r) && is_process(pid))
        tell_content(l, "is a run that process %" PRIu64 " still records into", pid);
    else
        tell_content(
            l, "is a run that a process on another machine, or in a container, still records into");
}

enum life { ENDED, LIVES, UNKNOWN };

/* The ring lies where the trace names it, or beside the trace (trace/ring_rescue.h). A lock that
 * nobody has says something about the processes of this kernel only. */
static enum life life_by_ring(const struct tmk_reader *r, const char *ring, const char *path)
{
    struct tmk_ring_file f;
    if (!tmk_ring_file_find(&f, ring, path, true))
        return tmk_ring_file_is_held_at(ring) != 0 ? LIVES : UNKNOWN;
    int held = tmk_ring_file_is_held(&f);
    tmk_ring_file_close(&f);
    return held != 0 ? LIVES : is_same_boot(r) ? ENDED : UNKNOWN;
}

/* A process without a ring file has a lock on its trace, where the file system has locks. */
static enum life life_by_lock(const struct tmk_reader *r, const char *path)
{
    if (!tmk_reader_info(r, "lock") || !is_same_boot(r))
        return UNKNOWN;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int taken = fd >= 0 ? tmk_file_lock_is_taken(fd, 0) : -1;
    bool works = taken == 0 && tmk_file_lock(fd, TMK_LOCK_SHARED, 0) == 0;
    if (fd >= 0)
        close(fd);
    return taken > 0 ? LIVES : works ? ENDED : UNKNOWN;
}

static void look_at_trace(struct content_look *l, const char *name)
{
    char *path = tmk_xformat("%s/%s", l->folder, name);
    struct tmk_reader *r = NULL;
    if (tmk_reader_open(path, &r, NULL) == 0 && tmk_reader_status(r)->state == TMK_STATE_OPEN) {
        const char *ring = tmk_reader_info(r, "ring");
        enum life life = ring ? life_by_ring(r, ring, path) : life_by_lock(r, path);
        if (life == LIVES || (life == UNKNOWN && may_be_recorded(r, path)))
            tell_living(l, r);
    }
    tmk_reader_close(r);
    free(path);
}

static void look_at_run_ring(struct content_look *l, const char *name)
{
    char *path = tmk_xformat("%s/%s", l->folder, name);
    if (tmk_ring_file_is_held_at(path) > 0)
        tell_recorded(l, "is a run that a process still records into");
    free(path);
}

/* ---- the folder ---- */

/* Show a name with characters that write on a terminal made harmless: it may be anybody's. */
static void show_name(const char *name, char to[SHOWN_NAME_BYTES])
{
    size_t n = strlen(name);
    bool cut = n >= SHOWN_NAME_BYTES;
    snprintf(to, SHOWN_NAME_BYTES, "%.*s%s", cut ? SHOWN_NAME_BYTES - 4 : (int)n, name,
             cut ? "..." : "");
    for (char *c = to; *c; c++)
        if ((unsigned char)*c < ' ' || (unsigned char)*c >= 0x7f)
            *c = '?';
}

static void look_at_run_entry(struct content_look *l, const char *name)
{
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return;
    if (!is_file_of_run(l, name)) {
        char shown[SHOWN_NAME_BYTES];
        show_name(name, shown);
        tell_content(l, "is a folder with other things in it (%s), not a run", shown);
        l->is_foreign = true;
        return;
    }
    l->n_ours++;
    if (l->is_named)
        return;
    if (name_ends_in(name, ".trace"))
        look_at_trace(l, name);
    else if (!l->is_living && name_ends_in(name, ".ring"))
        look_at_run_ring(l, name);
    else if (!l->is_living && is_locked(l, name))
        tell_recorded(l, "is a run that is still recorded into");
}

static enum tmk_run_content look_into(struct content_look *l)
{
    int copy = fcntl(l->fd, F_DUPFD_CLOEXEC, 3);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    if (!dir) {
        tell_content(l, "cannot be looked into (%s)", strerror(errno));
        if (copy >= 0)
            close(copy);
        return TMK_RUN_CONTENT_FOREIGN;
    }
    for (struct dirent *entry; !l->is_foreign && (entry = readdir(dir)) != NULL;)
        look_at_run_entry(l, entry->d_name);
    closedir(dir);
    if (l->is_foreign)
        return TMK_RUN_CONTENT_FOREIGN;
    if (l->is_living)
        return TMK_RUN_CONTENT_LIVING;
    return l->n_ours ? TMK_RUN_CONTENT_ENDED : TMK_RUN_CONTENT_EMPTY;
}

static const char *kind_of_file_text(mode_t mode)
{
    return S_ISLNK(mode)    ? _("is a symbolic link")
           : S_ISREG(mode)  ? _("is a file, not a run")
           : S_ISSOCK(mode) ? _("is a socket, not a run")
           : S_ISFIFO(mode) ? _("is a FIFO, not a run")
                            : _("is a device, not a run");
}

enum tmk_run_content tmk_run_content_look(const char *folder, char *text)
{
    struct content_look l = {.folder = folder, .text = text};
    struct stat st;
    *text = '\0';
    if (lstat(folder, &st) < 0) {
        if (errno == ENOENT)
            return TMK_RUN_CONTENT_NOTHING;
        tell_content(&l, "cannot be looked at (%s)", strerror(errno));
        return errno == EACCES ? TMK_RUN_CONTENT_NOTHING : TMK_RUN_CONTENT_FOREIGN;
    }
    if (!S_ISDIR(st.st_mode)) {
        tell_content(&l, "%s", kind_of_file_text(st.st_mode));
        return TMK_RUN_CONTENT_FOREIGN;
    }
    if (st.st_uid != geteuid()) {
        tell_content(&l, "belongs to another user (%u)", (unsigned)st.st_uid);
        return TMK_RUN_CONTENT_FOREIGN;
    }
    l.fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (l.fd < 0) {
        tell_content(&l, "cannot be opened (%s)", strerror(errno));
        return TMK_RUN_CONTENT_FOREIGN;
    }
    enum tmk_run_content found = look_into(&l);
    close(l.fd);
    return found;
}
