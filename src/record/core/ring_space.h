/* SPDX-License-Identifier: MIT */
/* record/core/ring_space.h - the memory and disk that this process takes for its recording, out of
 * the run's shares (trace/account.h, trace/disk_share.h).
 *
 * The ring goes to tmpfs, else beside the trace, else into memory that does not outlive the
 * process. It begins with a few pages; a thread that finds none free adds some, and the packer adds
 * more ahead of need while the process is busy. Where a thread cannot add any, it asks the packer,
 * who does, or empties pages that are full. Rings of processes that were killed are moved out
 * of tmpfs by whoever of the run is alive.
 *
 * Everything but tmk_ring_space_take_page() is for the packer thread. */
#ifndef TMK_RECORD_RING_SPACE_H
#define TMK_RECORD_RING_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/identity/identity.h"
#include "trace/layout.h"

/* Forget everything, of a parent or of a recording that has ended. */
void tmk_ring_space_reset(void);
/* Open the account of the run, whose folder exists. Descriptors may stay open if the calling thread
 * has a table of its own for them. Fails only for want of memory or room: the process then records
 * nothing. */
int tmk_ring_space_open(bool has_own_descriptors);
/* Make the ring; its path goes into `path`, which must outlive it ("": it has no file). */
int tmk_ring_space_make_ring(const struct tmk_identity *id, const char *trace_path, char *path,
                             size_t path_size);
/* The ring is done with: remove its file, give all back, leave the account. */
void tmk_ring_space_close(void);

/* How large the trace may become: what was asked for, and at most a part of what the run may still
 * take of the disk. */
uint64_t tmk_ring_space_trace_bytes(int64_t local_size);
/* A tmk_grant for the trace's writer. */
bool tmk_ring_space_grant(void *unused, uint64_t bytes);
/* The trace did not use what it was granted. */
void tmk_ring_space_give_back(uint64_t bytes);

/* A free page of the ring, which grows if there is none; NULL: it cannot. Any thread. */
struct tmk_page *tmk_ring_space_take_page(uint32_t thread);
/* Whether a thread has asked for pages that it did not find. */
bool tmk_ring_space_is_wanted(void);
/* The same; whoever asks from now on asks anew. */
bool tmk_ring_space_take_wish(void);
/* Up to n pages ahead of need: how many were added. If any, whoever waits for one is woken. */
uint32_t tmk_ring_space_grow_ahead(uint32_t n_pages);
/* Full pages were emptied because somebody asked: wake whoever waits. */
void tmk_ring_space_answer(void);

/* Count this process among those that are not recorded (account.h), with the account open or not.
 * False: there is none. */
bool tmk_ring_space_count_refusal(enum tmk_stop reason);

/* Have the rings of dead processes of this run moved, on a thread of its own, if it is time. */
void tmk_ring_space_look(void);

#endif
