/* SPDX-License-Identifier: MIT */
/* trace/drain.h - moves records from a ring to a packer, all threads merged in order of time.
 *
 * A drain looks at the clock first and takes only records stamped until then. A record that was
 * caused by another (a block reused after its free) was stamped after the other was published, or
 * has the stamp of one that was, on its own thread (record/torch/fast_path.h): so whatever it
 * takes, it takes the cause too: chunks never hold an effect without its cause.
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

/* Leave out what the chunks up to `last_seq` hold already; for the ring of a dead process. */
void tmk_drain_skip_packed(struct tmk_drain *d, uint64_t last_seq);

/* Write what is noted about pages (how much of them is packed) to the ring file `fd` too, when the
 * ring is a copy: should this merge be killed, the next one goes on where it stopped. Its header
 * says, before the first and before each further chunk, what the last one was: for those who read
 * meanwhile. */
void tmk_drain_keep_marks(struct tmk_drain *d, int fd);

/* Move everything stamped until now, as one or more chunks. 0, or the packer's error. */
int tmk_drain_run(struct tmk_drain *d);

/* The latest tick that counts, for copies of rings, whose clock is not to be read: UINT64_MAX for
 * all. */
void tmk_drain_take_until(struct tmk_drain *d, uint64_t ticks);

#endif
