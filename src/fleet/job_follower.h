/* SPDX-License-Identifier: MIT */
/* fleet/job_follower.h - one watched process, followed: its figures, read again and again.
 *
 * The trace file is followed, not the ring: a recorder moves its events to the file every four
 * seconds at the latest, which is soon enough for a scrape, and so each event is replayed once
 * however often one looks. (`ps` and `top`, which show this moment, copy the ring and replay from
 * the last checkpoint.) Memory is bounded: the state of the blocks alive, the definitions, and the
 * last TMK_FOLLOWED_ROWS rows of the per-step history and headers of chunks, in which a forecast
 * looks for the driver's samples. */
#ifndef TMK_FLEET_JOB_FOLLOWER_H
#define TMK_FLEET_JOB_FOLLOWER_H

#include "base/error.h"
#include "fleet/node.h"
#include "model/watched.h"

enum { TMK_FOLLOWED_ROWS = 2048, TMK_FOLLOWED_CHUNKS = 32 };

struct tmk_job_follower;

/* Open; it holds nothing of the trace yet. NULL: no memory. */
struct tmk_job_follower *tmk_job_follower_open(const struct tmk_watched *w);
struct tmk_job_follower *tmk_job_follower_close(struct tmk_job_follower *f); /* takes NULL */

/* Take in what is new, and fill in the figures of *job that come from the trace, all but `device`
 * of its uses. With `wants_blocks` categories and fragmentation too, which take time by the number
 * of blocks; else they stay as they are in *job. 0, or TMK_E* with a reason: TMK_EPROCESS when the
 * trace belongs to another user than the process. */
int tmk_job_follower_look(struct tmk_job_follower *f, bool wants_blocks, struct tmk_node_job *job,
                          struct tmk_error *err);
const struct tmk_watched *tmk_job_follower_watched(const struct tmk_job_follower *f);

#endif
