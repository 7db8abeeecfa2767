/* SPDX-License-Identifier: MIT */
/* trace/replay.h - runs a trace's events through a state in one sweep, front to back.
 *
 * A pass learns from the trace by visiting: after each event has been applied, visit() sees the
 * event, the block it was about (or NULL) and, through the replay, the state as it is now. Where a
 * chunk is missing (damage, or given up for --max-size) the replay goes on from the next checkpoint
 * or, when there is none, from the context that every events chunk carries. */
#ifndef TMK_TRACE_REPLAY_H
#define TMK_TRACE_REPLAY_H

#include "base/error.h"
#include "trace/events.h"
#include "trace/reader.h"
#include "trace/segments.h"
#include "trace/state.h"

struct tmk_replay;

/* A set of event kinds: TMK_HEARS(ALLOC) | TMK_HEARS(FREE). */
#define TMK_HEARS(kind) (UINT32_C(1) << TMK_KIND_##kind)

/* A visitor of a replay: the events that it hears of and its functions; any of these may be NULL.
 *   kinds:    the events that it hears of, a set. 0, which nobody has to remember: all of them.
 *   event:    an event was applied. `b` is its block for ALLOC, FREE and TAG of a live block, else
 *             NULL. A freed block keeps its values until the next event. When an allocation hits an
 *             address that is still live, a FREE with `implied` set comes first, and one for each
 *             block that a DEVICE_END gives up. `slot` of those means nothing.
 *   restored: the state was replaced from outside: from a checkpoint, or patched after a gap.
 *   progress: `done` of `total` chunks have been read. */
struct tmk_visitor {
    void *arg;
    uint32_t kinds;
    void (*event)(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                  struct tmk_block *b);
    void (*restored)(void *arg, const struct tmk_replay *rp);
    void (*progress)(void *arg, uint32_t done, uint32_t total);
};

struct tmk_replay {
    struct tmk_state state;
    struct tmk_cursor cursor;
    bool from_newest;             /* set before run: begin at the newest checkpoint */
    bool is_raw;                  /* set before run: the tail step is one, as the events say */
    bool implied;                 /* the FREE being visited was not recorded but must have been */
    struct tmk_open_range closed; /* the range that the POP being visited closed; kind 0: none */
    struct tmk_driver_segment ended; /* the one that the SEGMENT or SEGMENT_END being visited ended;
                                        kind 0: none */

    /* The findings of the sweep. */
    uint32_t n_gaps;
    uint32_t n_bad_chunks;
    uint64_t n_replayed;
    struct tmk_error damage; /* the first damage, when n_bad_chunks */

    uint32_t *entries; /* by slot of the current chunk: index into state.entries */
    uint32_t entry_room;

    /* Where the sweep stands, so that follow can go on from there. */
    uint64_t next_seq; /* of the chunk that comes next; 0: nothing was read */
    bool has_gap;      /* the chunk before it is missing */
    bool is_lost;      /* a gap lies between the last checkpoint and here */
    uint32_t n_learnt; /* strings that may be names of stages */
};

/* Returns 0 or TMK_ENOMEM. fini takes a zeroed or half-made one. */
int tmk_replay_init(struct tmk_replay *rp, const struct tmk_state_limits *limits);
void tmk_replay_fini(struct tmk_replay *rp);

/* Replay all chunks of `r`. Damage is noted and passed over; only running out of memory or a
 * failing read ends the sweep. */
int tmk_replay_run(struct tmk_replay *rp, struct tmk_reader *r, const struct tmk_visitor *visitor,
                   struct tmk_error *err);
/* Go on with the chunks that the reader has got since (tmk_reader_follow). */
int tmk_replay_follow(struct tmk_replay *rp, struct tmk_reader *r,
                      const struct tmk_visitor *visitor, struct tmk_error *err);

/* Give back the memory that is needed only while it reads, until the next follow. */
void tmk_replay_rest(struct tmk_replay *rp);

#endif
