/* SPDX-License-Identifier: MIT */
/* trace/drain.h - moves records from a ring to a packer, all threads merged in order of time.
 *
 * A drain looks at the clock first and takes only records stamped until then. A record that was
 * caused by another (a block reused after its free) was stamped after the other was published, or
 * has the stamp of one that was, on its own thread (record/torch/fast_path.h). So a drain that
 * takes an effect also takes its cause: chunks never have an effect without its cause.
 *
 * The same code runs in the watched process and over the copied ring of a dead one, where pages
 * may hold anything: every record is checked before use. */
#ifndef TMK_TRACE_DRAIN_H
#define TMK_TRACE_DRAIN_H

#include <stdbool.h>

#include "trace/packer.h"
#include "trace/ring.h"

struct tmk_drain;

/* `recycle`: give emptied pages back to the ring (the living packer); else leave them alone. */
int tmk_drain_open(struct tmk_ring *ring, struct tmk_packer *packer, bool recycle,
                   struct tmk_drain **ret_drain);
struct tmk_drain *tmk_drain_close(struct tmk_drain *d);

/* Leave out records that the chunks up to `last_seq` have already; for the ring of a dead process.
 */
void tmk_drain_skip_packed(struct tmk_drain *d, uint64_t last_seq);

/* When the ring is a copy, also write the marks of its pages (how much of each is packed) to the
 * ring file `fd`: should this merge be killed, the next one goes on where it stopped. Before each
 * chunk the file's header gets the number of the chunk before it, for processes that read
 * meanwhile. */
void tmk_drain_keep_marks(struct tmk_drain *d, int fd);

/* Move everything stamped until now, as one or more chunks. Returns 0 or the packer's error. */
int tmk_drain_run(struct tmk_drain *d);

/* Set the latest tick that counts, for a copy of a ring, where the clock may not be read:
 * UINT64_MAX for all. */
void tmk_drain_take_until(struct tmk_drain *d, uint64_t ticks);

#endif
