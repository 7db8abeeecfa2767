/* SPDX-License-Identifier: MIT */
/* trace/ring_file.h - a ring as a file: whose it is, whether its process lives, how it is removed.
 *
 * Two locks, both of the open file, not of a process:
 *
 *     byte 0  "alive": the recorder takes it on the descriptor that it maps the ring through, then
 *             closes that descriptor. On most file systems the mapping keeps the open file and the
 *             lock with it, so the lock is there for exactly as long as the process's memory is: no
 *             program can close it, no forked child has it (MADV_DONTFORK), and every PID namespace
 *             sees it. A mapping on overlayfs is of another open file, that of the layer below, and
 *             the lock goes with the descriptor. So the recorder asks whether it is still there; if
 *             not, its thread keeps a descriptor in the table that it alone has (base/fd.h). It has
 *             no ring in such a place where it has no table of its own.
 *     byte 1  "merging": whoever moves a dead process's records takes it first.
 *
 * A trace names its ring, and a trace may come from anybody. So a ring is opened through a
 * descriptor of its folder, never through a link. The ring of somebody else's trace is read only
 * where rings are made (beside the trace, and in the ring folders below). Who looks through a whole
 * ring folder opens no file of another user's. Only a file of the
 * reader's own user is ever removed, by that descriptor, if its inode is still the one that was
 * read. */
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

/* Take the lock that says "alive" on a new ring. 0, or -1 and errno. */
int tmk_ring_file_hold(int fd);
/* Whether another open file has it: 1, 0, or TMK_EIO when it cannot be told. Where flock() stands
 * in (file_lock.h), the caller's own is given back. */
int tmk_ring_file_is_held_by_another(int fd);

/* Open the ring at `path`, to be written if it is the caller's own, else only to be read. A plain
 * file named *.ring, or TMK_EFORMAT; TMK_EIO when it cannot be opened (os_error ENOENT: none). */
int tmk_ring_file_open(struct tmk_ring_file *ret, const char *path, struct tmk_error *err);
/* The same by name in a folder that is open; *ret takes its own descriptor of it. */
int tmk_ring_file_open_in(struct tmk_ring_file *ret, int folder, const char *name,
                          struct tmk_error *err);
/* The same for a file of the caller's own; another user's is not opened (TMK_EIO). */
int tmk_ring_file_open_own_in(struct tmk_ring_file *ret, int folder, const char *name,
                              struct tmk_error *err);
/* Takes files that are not open. */
void tmk_ring_file_close(struct tmk_ring_file *f);

/* The ring that the trace at `trace_path` names as `ring_path`: there, if the trace is the caller's
 * own (`own_trace`) or that is a folder for rings, else under the same name beside the trace, where
 * another process of the run may have put it. 1 and an open file, 0 when there is none or it lies
 * where no reader looks. */
int tmk_ring_file_find(struct tmk_ring_file *ret, const char *ring_path, const char *trace_path,
                       bool own_trace);

/* Whether a file of that name may be the caller's: it begins with "tidemark.UID.". This is asked
 * first in a folder for all, where another user may have made any number of files. */
bool tmk_ring_file_is_users_name(const char *name);

/* Whether a living process has the ring: 1, 0, or TMK_EIO when it cannot be told. */
int tmk_ring_file_is_held(const struct tmk_ring_file *f);

/* The same of a path; 0 when there is no such ring. */
int tmk_ring_file_is_held_at(const char *path);

/* Whether it belongs to the user who asks. */
bool tmk_ring_file_is_own(const struct tmk_ring_file *f);

/* Its header; false, and *ret is untouched, when it has none that makes sense. */
bool tmk_ring_file_header(const struct tmk_ring_file *f, struct tmk_ring_header *ret);
/* Whether page i of the file has records, or had: it is not free. */
bool tmk_ring_file_uses_page(const struct tmk_ring_file *f, uint32_t i);
/* How many of its first n pages do. */
uint32_t tmk_ring_file_n_used(const struct tmk_ring_file *f, uint32_t n_pages);

/* Lock it for merging, waiting so long if another does. 0; TMK_EBUSY when another has it still, or
 * the ring is gone meanwhile; TMK_EIO when it cannot be locked: it could only be opened to be read,
 * or its file system has no locks. The lock goes with the file. */
int tmk_ring_file_lock(const struct tmk_ring_file *f, uint64_t limit_ns);

/* Remove an own file, if its name still stands for it. True: done. */
bool tmk_ring_file_remove(const struct tmk_ring_file *f);

/* The folders that rings are made in, in this order, each once: $TIDEMARK_RING_DIR,
 * $XDG_RUNTIME_DIR, /run/user/UID, /dev/shm. For our own processes: reads the environment, whose
 * texts are borrowed. */
enum { TMK_RING_FOLDERS = 4 };
struct tmk_ring_folders {
    const char *paths[TMK_RING_FOLDERS];
    unsigned n;
    char of_user[32];
};
void tmk_ring_folders(struct tmk_ring_folders *ret);

#endif
