/* SPDX-License-Identifier: MIT */
/* record/core/ring_space.h - the memory and disk that this process uses for its recording, out of
 * the run's shares (trace/account.h, trace/disk_share.h).
 *
 * The ring goes to tmpfs, else beside the trace, else into memory that ends with the process. It
 * begins with a few pages. A thread that finds none free adds some, and the packer adds more ahead
 * of need while the process is busy. A thread that cannot add any asks the packer, which adds them
 * or empties full pages. Rings of killed processes are moved out of tmpfs by any process of the run
 * that is alive.
 *
 * Everything but tmk_ring_space_take_page() is for the packer thread. */
#ifndef TMK_RECORD_RING_SPACE_H
#define TMK_RECORD_RING_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/identity/identity.h"
#include "trace/layout.h"

/* Forget everything: it belongs to a parent, or to a recording that has ended. */
void tmk_ring_space_reset(void);
/* Open the account of the run, whose folder exists. Descriptors may stay open if the calling thread
 * has its own table of them. Fails only without memory or room; then the process records
 * nothing. */
int tmk_ring_space_open(bool has_own_descriptors);
/* Make the ring. Its path goes to `path`, which must outlive it ("": it has no file). */
int tmk_ring_space_make_ring(const struct tmk_identity *id, const char *trace_path, char *path,
                             size_t path_size);
/* Close the ring: remove its file, give everything back, leave the account. */
void tmk_ring_space_close(void);

/* How large the trace may become: as asked for, but at most a part of the disk that the run may
 * still use. */
uint64_t tmk_ring_space_trace_bytes(int64_t local_size);
/* A tmk_grant function for the trace's writer. */
bool tmk_ring_space_grant(void *unused, uint64_t bytes);
/* Return bytes that were granted and not used by the trace. */
void tmk_ring_space_give_back(uint64_t bytes);

/* Take a free page of the ring, which grows if it has none; NULL: it cannot grow. Any thread. */
struct tmk_page *tmk_ring_space_take_page(uint32_t thread);
/* True when a thread has asked for pages that it did not find. */
bool tmk_ring_space_is_wanted(void);
/* The same, and forget the wish: whoever asks from now on asks anew. */
bool tmk_ring_space_take_wish(void);
/* Add up to n pages ahead of need; returns how many. If any were added, waiting threads are
 * woken. */
uint32_t tmk_ring_space_grow_ahead(uint32_t n_pages);
/* Wake waiting threads, because full pages were emptied for them. */
void tmk_ring_space_answer(void);

/* Count this process among those that are not recorded (account.h), whether the account is open or
 * not. False: there is no account. */
bool tmk_ring_space_count_refusal(enum tmk_stop reason);

/* If it is time, have the rings of this run's dead processes moved, by a thread made for that. */
void tmk_ring_space_look(void);

#endif
