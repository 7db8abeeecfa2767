/* SPDX-License-Identifier: MIT */
/* trace/disk_share.h - the count of the disk space that all processes of a run take.
 *
 * A run may take a tenth of the space that would be free without it. The free space is read at
 * every request, so the share shrinks when the job itself fills the disk. Granted space is counted
 * in a file in the run folder, `tidemark.BOOT.disk`, where all processes of one machine find it,
 * whatever their mount and UTS namespaces and environments are; BOOT is the kernel's boot id. The
 * file is read and written under a lock of the open file, never mapped: a full disk may refuse a
 * mapped page by SIGBUS.
 *
 * The count covers requested space. Killed processes leave some of it unused: before a request is
 * refused, the count is taken again from the sizes of the run's files, at most once a second. Space
 * that a living process has taken and not written yet is in no file, so the file has a slot for
 * each process that says how much that is. A slot counts while its owner has a lock on it. */
#ifndef TMK_TRACE_DISK_SHARE_H
#define TMK_TRACE_DISK_SHARE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum { TMK_DISK_SHARE_PATH_BYTES = 3584 };

struct tmk_disk_share {
    int fd; /* -1: it was lost */
    dev_t device;
    ino_t inode;
    uint32_t n_nodes; /* that share the disk of the run folder, this one included; 0: not known */
    uint64_t left_bytes;  /* when last looked at: what counts where that can no longer be done */
    unsigned slot;        /* 1 and up; 0: none */
    uint64_t ahead_bytes; /* taken, and perhaps not in a file yet: what the slot says */
    char folder[TMK_DISK_SHARE_PATH_BYTES];
    char path[TMK_DISK_SHARE_PATH_BYTES]; /* "": not open */
};

/* Open the count of `run_folder`, which exists; make it if there is none. Fails where no file can
 * be made. With `n_nodes` 0 the number in the file counts. */
int tmk_disk_share_open(struct tmk_disk_share *ret, const char *run_folder, uint32_t n_nodes,
                        struct tmk_error *err);
/* Close the count; the file stays. A share that is not open is accepted. */
void tmk_disk_share_close(struct tmk_disk_share *s);

/* Take disk space, when what was taken before is in a file or given back. False when the share has
 * not so much left (errno ENOBUFS), or it cannot be counted. */
bool tmk_disk_share_take(struct tmk_disk_share *s, uint64_t bytes);
/* Count space that is used already, even beyond the share. */
void tmk_disk_share_put(struct tmk_disk_share *s, uint64_t bytes);
void tmk_disk_share_give(struct tmk_disk_share *s, uint64_t bytes);
/* How many bytes could be taken now. */
uint64_t tmk_disk_share_left(struct tmk_disk_share *s);
/* How many bytes are counted. */
uint64_t tmk_disk_share_used(struct tmk_disk_share *s);

/* Remove the count of this machine, after the run has ended. */
void tmk_disk_share_remove(const char *run_folder);

/* The kernel's boot id in hexadecimal digits without dashes; zeros where it cannot be read. */
enum { TMK_BOOT_ID_BYTES = 33 };
const char *tmk_boot_id(void);

#endif
