/* SPDX-License-Identifier: MIT */
/* base/file_lock.h - locks that belong to an open file, not to a process.
 *
 * A lock goes when the last reference to the open file does: closing a descriptor of another open
 * file of the same name does not end it, although it would end a POSIX lock. A mapping is such a
 * reference on most file systems, not on overlayfs: a process that closes the descriptor and counts
 * on the mapping checks whether the lock still exists. Files have one for each byte, whether or not
 * the file is that long. Where the kernel knows no such locks (gVisor), flock() stands in, which
 * has one for the whole file. */
#ifndef TMK_BASE_FILE_LOCK_H
#define TMK_BASE_FILE_LOCK_H

#include <stdbool.h>

enum tmk_lock_kind { TMK_LOCK_SHARED, TMK_LOCK_EXCLUSIVE };

/* Takes the lock, or changes its kind, without waiting. Returns 0, or -1 and errno (EAGAIN: another
 * open file has it). */
int tmk_file_lock(int fd, enum tmk_lock_kind kind, int byte);

/* Releases the lock before the file is closed. */
void tmk_file_unlock(int fd, int byte);

/* Whether another open file has a lock there, of either kind: 1, 0, or -1 and errno. A lock that
 * the caller's own file has there does not count; it is gone afterwards where flock() stands in. */
int tmk_file_lock_is_taken(int fd, int byte);

/* Whether bytes have locks of their own, so that one open file may hold several: not where flock()
 * stands in. */
bool tmk_file_lock_is_by_byte(int fd);

#endif
