/* SPDX-License-Identifier: MIT */
/* trace/ring_rescue.h - moves the ring of a dead process out of memory, without malloc.
 *
 * Merging a ring needs a reader, which a watched process does not have. For a sibling that was
 * killed, it can only give the memory back: the pages in use, usually a few, go into a smaller ring
 * of the same name in the run folder, where the next reader finds and merges them. */
#ifndef TMK_TRACE_RING_RESCUE_H
#define TMK_TRACE_RING_RESCUE_H

#include <stdint.h>

#include "trace/account.h"
#include "trace/disk_share.h"
#include "trace/ring_file.h"

/* Look through the rings of this user in `folder` that have their traces in `run_folder`, and move
 * the rings of dead processes there, as far as the run's share of the disk has room. A ring without
 * a trace is left alone: its run may have been moved, or lie in another mount namespace. Returns
 * how many are gone. */
uint32_t tmk_ring_rescue_all(struct tmk_account *a, struct tmk_disk_share *disk, const char *folder,
                             const char *run_folder);

enum tmk_ring_owner { TMK_RING_OWNED, TMK_RING_DEAD, TMK_RING_ORPHAN };

/* Tell who owns a ring: a living process (or that cannot be told), a dead one that has a trace, or
 * nobody: then the trace is not there, or the file has had no header for ten seconds. `ret_header`
 * is filled where there is a header. */
struct tmk_ring_header;
enum tmk_ring_owner tmk_ring_owner(const struct tmk_ring_file *f,
                                   struct tmk_ring_header *ret_header);

#endif
