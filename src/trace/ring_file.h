/* SPDX-License-Identifier: MIT */
/* trace/ring_file.h - a ring as a file: its owner, whether its process lives, and how it is
 * removed.
 *
 * It has two locks, both of the open file, not of a process:
 *
 *     byte 0  "alive": the recorder takes it on the descriptor that it maps the ring through, then
 *             closes that descriptor. On most file systems the mapping keeps the open file and the
 *             lock with it, so the lock is there for exactly as long as the process's memory is: no
 *             program can close it, no forked child has it (MADV_DONTFORK), and every PID namespace
 *             sees it. On overlayfs a mapping is of another open file, the one in the layer below,
 *             and the lock goes with the descriptor. So the recorder asks whether the lock is still
 *             there; if not, its thread keeps a descriptor in the table that it alone has
 *             (base/fd.h). It makes no ring on overlayfs when it has no such table.
 *     byte 1  "merging": a process that moves a dead process's records takes it first.
 *
 * A trace names its ring, and a trace may come from anybody. So a ring is opened through a
 * descriptor of its folder, never through a link. The ring of another user's trace is read only
 * where rings are made (beside the trace, and in the ring folders below). A search through a whole
 * ring folder opens no file of another user. Only a file of the reader's own user is ever removed,
 * by that descriptor, if its inode is still the one that was read. */
#ifndef TMK_TRACE_RING_FILE_H
#define TMK_TRACE_RING_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"
#include "trace/layout.h"

enum { TMK_RING_NAME_BYTES = 256, TMK_RING_PATH_BYTES = 3584 };

struct tmk_ring_file {
    int folder; /* O_PATH, -1: not open */
    int fd;     /* -1: not open */
    struct stat st;
    char name[TMK_RING_NAME_BYTES];
};

/* Take the lock that says "alive" on a new ring. Returns 0, or -1 and errno. */
int tmk_ring_file_hold(int fd);
/* Whether another open file has that lock: 1, 0, or TMK_EIO when it cannot be told. Where flock()
 * stands in (file_lock.h), the caller's own lock is released. */
int tmk_ring_file_is_held_by_another(int fd);

/* Open the ring at `path`, for writing if it is the caller's own, else only for reading. Returns
 * TMK_EFORMAT for anything but a plain file named *.ring; TMK_EIO when it cannot be opened
 * (os_error ENOENT: there is none). */
int tmk_ring_file_open(struct tmk_ring_file *ret, const char *path, struct tmk_error *err);
/* The same by name in a folder that is open; *ret takes its own descriptor of it. */
int tmk_ring_file_open_in(struct tmk_ring_file *ret, int folder, const char *name,
                          struct tmk_error *err);
/* The same for the caller's own files only; another user's is not opened (TMK_EIO). */
int tmk_ring_file_open_own_in(struct tmk_ring_file *ret, int folder, const char *name,
                              struct tmk_error *err);
/* Close the ring; a file that is not open is accepted. */
void tmk_ring_file_close(struct tmk_ring_file *f);

/* Find the ring that the trace at `trace_path` names as `ring_path`: at that path, if the trace is
 * the caller's own (`own_trace`) or the path is in a folder for rings, else under the same name
 * beside the trace, where another process of the run may have put it. Returns 1 and an open file, 0
 * when there is none or it lies where no reader looks. */
int tmk_ring_file_find(struct tmk_ring_file *ret, const char *ring_path, const char *trace_path,
                       bool own_trace);

/* Whether a file of that name may be the caller's: it begins with "tidemark.UID.". A search of a
 * shared folder checks this first, because another user may have made any number of files there. */
bool tmk_ring_file_is_users_name(const char *name);

/* Whether a living process has the ring: 1, 0, or TMK_EIO when that cannot be told. */
int tmk_ring_file_is_held(const struct tmk_ring_file *f);

/* The same for a path; 0 when there is no such ring. */
int tmk_ring_file_is_held_at(const char *path);

/* Whether the file belongs to the calling user. */
bool tmk_ring_file_is_own(const struct tmk_ring_file *f);

/* Read the ring's header. Returns false, with *ret untouched, when it has none that makes sense. */
bool tmk_ring_file_header(const struct tmk_ring_file *f, struct tmk_ring_header *ret);
/* Whether page i of the file has records, or had: it is not free. */
bool tmk_ring_file_uses_page(const struct tmk_ring_file *f, uint32_t i);
/* How many of the file's first n pages have records, or had. */
uint32_t tmk_ring_file_n_used(const struct tmk_ring_file *f, uint32_t n_pages);

/* Lock the ring for merging; wait at most limit_ns for another merger. Returns 0; TMK_EBUSY when
 * another still has the lock, or the ring is gone meanwhile; TMK_EIO when it cannot be locked: it
 * could only be opened for reading, or its file system has no locks. Closing the file ends the
 * lock. */
int tmk_ring_file_lock(const struct tmk_ring_file *f, uint64_t limit_ns);

/* Remove an own file, if its name still stands for it. Returns whether it was removed. */
bool tmk_ring_file_remove(const struct tmk_ring_file *f);

/* The folders where rings are made, in this order, each once: $TIDEMARK_RING_DIR, $XDG_RUNTIME_DIR,
 * /run/user/UID, /dev/shm. Only tidemark's own processes call it: it reads the environment and
 * borrows its texts. */
enum { TMK_RING_FOLDERS = 4 };
struct tmk_ring_folders {
    const char *paths[TMK_RING_FOLDERS];
    unsigned n;
    char of_user[32];
};
void tmk_ring_folders(struct tmk_ring_folders *ret);

#endif
