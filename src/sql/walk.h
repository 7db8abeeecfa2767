/* SPDX-License-Identifier: MIT */
/* sql/walk.h - a walk through the events of a chunk with as little state as a row needs.
 *
 * A replay follows every block; most tables do not need that. An events chunk says what was true
 * when it began: bytes on each device, sizes of the blocks at its addresses, open ranges, step.
 * With an array of sizes by slot of its address dictionary, the walk knows the bytes allocated
 * after each event without hashing anything, and chunks can be read in any order, or not at all.
 *
 * There are two ways through a chunk: next() stops at every event; modules() in walk_modules.h
 * stops only where a module opens or closes, and is several times as quick.
 *
 * Chunks read one after the other are joined: ranges opened in the first are known in the second,
 * with what was allocated when they opened, which the context does not tell. */
#ifndef TMK_SQL_WALK_H
#define TMK_SQL_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"
#include "kit/grow.h"
#include "sql/skim.h"
#include "sql/source.h"
#include "tidemark/tidemark.h"
#include "trace/events.h"
#include "trace/state.h"

#define TMK_WALK_NO_CHUNK UINT32_MAX

struct tmk_walk_range {
    uint64_t start_ns; /* trace time */
    /* These are of the walk's device when the range opened; known only if the walk saw that. */
    uint64_t allocated_bytes, max_bytes;
    uint64_t row;                /* the table's own, 0 when the range opens */
    uint32_t name;               /* string id */
    uint32_t module, stage_name; /* string ids: innermost ones, the range included; 0: none */
    uint8_t kind;                /* enum tidemark_range */
    uint8_t stage;               /* enum tmk_stage of stage_name */
    bool seen;                   /* the walk saw it open */
};

struct tmk_walk_thread {
    struct tmk_walk_range *ranges; /* outermost first */
    uint64_t n, room;
    uint32_t thread;
};

struct tmk_walk_device {
    uint64_t allocated_bytes;
    uint64_t max_bytes;                          /* of all time */
    uint64_t reserved_bytes, max_reserved_bytes; /* if has_reserved */
    uint16_t device;
    bool has_reserved;
};

struct tmk_walk {
    struct tmk_event event; /* the last one */
    /* The state after it: */
    int64_t step;
    uint64_t step_start_ns;
    int64_t local_step; /* TMK_NULL_INT: not known; only with want_local_step */
    uint64_t n_step_module_events;
    struct tmk_walk_device devices[TMK_MAX_DEVICES + 1]; /* the last: all devices without a place */
    uint32_t n_devices;
    uint32_t main_device; /* index of the walk's device */
    /* The size of the block that a FREE, or an ALLOC at a live address, ended; else UINT64_MAX. */
    uint64_t freed_bytes;
    /* The ranges that a CLOSE ended, its own and those left open inside it; n_closed is 0 for other
     * events. Good until next(). */
    const struct tmk_walk_range *closed;
    uint64_t n_closed;
    struct tmk_walk_thread *thread; /* the event's thread */

    bool want_device;     /* the walk is of `device`; else of the source's main one */
    bool want_local_step; /* needs times */
    bool want_times;      /* modules() gives times only if asked, */
    bool want_bytes;      /* and bytes of the walk's device too, */
    bool want_reserved;   /* and those reserved */

    uint16_t device; /* set before begin() with want_device, else by begin() */

    /* Private to the walk. */
    struct tmk_walk *beside;
    struct tmk_source *source;
    uint32_t next_chunk; /* that would be joined to the last */
    struct tmk_cursor cursor;
    uint64_t *lives; /* by slot: 0, or size + 1 of the block alive there */
    uint8_t *slot_devices;
    uint64_t live_room, slot_device_room;
    struct tmk_walk_thread *threads;
    uint64_t n_threads, thread_room;
    struct tmk_index thread_index; /* of index + 1 */
    bool is_timed, has_bytes;      /* open ranges know when they opened, and what there was then */
    bool failed;                   /* out of memory */
    struct tmk_skim skim;          /* the chunk's sections, decoded */
    uint64_t run_end;              /* number of the event where another thread's begin */
};

/* Zero is a walk that has not begun. */
void tmk_walk_fini(struct tmk_walk *w);

/* Another walk, for another device through the same chunks; fini() of the first takes all. Made
 * when first asked for; NULL without memory. */
struct tmk_walk *tmk_walk_beside(struct tmk_walk *w);

/* Go to the first event of chunk `i` of the source. Returns 0; TMK_EDAMAGED: it cannot be read,
 * go on with the next; TMK_ENOMEM or TMK_EIO. */
int tmk_walk_begin(struct tmk_walk *w, struct tmk_source *source, uint32_t i,
                   struct tmk_error *err);
/* True when begin() would join chunk `i` to the one read last. */
bool tmk_walk_is_next(const struct tmk_walk *w, const struct tmk_source *source, uint32_t i);

/* Apply the next event. Returns 1, 0 at the end, TMK_EDAMAGED or TMK_ENOMEM. */
int tmk_walk_next(struct tmk_walk *w);
/* Call `visit` after each event of chunk `i`, or of each that is not about blocks, ranges or
 * steps: a chunk without such events is not even walked. Damage is skipped. Returns 0, TMK_ENOMEM
 * or TMK_EIO. */
enum tmk_walk_events { TMK_WALK_ALL, TMK_WALK_OTHER };
int tmk_walk_chunk(struct tmk_walk *w, struct tmk_source *source, uint32_t i,
                   enum tmk_walk_events which, void (*visit)(void *arg), void *arg,
                   struct tmk_error *err);

/* The ranges of a thread, made when new; NULL without memory. */
struct tmk_walk_thread *tmk_walk_thread_of(struct tmk_walk *w, uint32_t thread);

/* The innermost range of the event's thread; NULL when none is open. */
static inline const struct tmk_walk_range *tmk_walk_top(const struct tmk_walk *w)
{
    return w->thread && w->thread->n ? &w->thread->ranges[w->thread->n - 1] : NULL;
}

enum { TMK_WALK_MAX_DEPTH = 1 << 20 };

#define TMK_WALK_INLINE __attribute__((always_inline)) static inline

/* ---- ranges ---- */

static inline bool tmk_walk_make_room(struct tmk_walk *w, struct tmk_walk_thread *t)
{
    bool has_room = TMK_GROW(t->ranges, t->n + 1, t->room) == 0;
    w->failed = w->failed || !has_room;
    return has_room;
}

/* Open a range. Returns false when it is nested too deeply, or without memory (`failed`). */
TMK_WALK_INLINE bool tmk_walk_open(struct tmk_walk *w, struct tmk_walk_thread *t, uint8_t kind,
                                   uint32_t name, uint64_t start_ns, bool seen)
{
    if (t->n >= TMK_WALK_MAX_DEPTH || (t->n >= t->room && !tmk_walk_make_room(w, t)))
        return false;
    const struct tmk_walk_device *d = &w->devices[w->main_device];
    struct tmk_walk_range *r = &t->ranges[t->n];
    const struct tmk_walk_range none = {0}, *outer = t->n ? r - 1 : &none;
    t->n++;
    *r = (struct tmk_walk_range){
        .start_ns = start_ns,
        .allocated_bytes = d->allocated_bytes,
        .max_bytes = d->max_bytes,
        .name = name,
        .module = kind == TIDEMARK_MODULE ? name : outer->module,
        .stage_name = outer->stage_name,
        .kind = kind,
        .stage = outer->stage,
        .seen = seen,
    };
    if (kind == TIDEMARK_STAGE) {
        r->stage_name = name;
        r->stage = (uint8_t)tmk_source_stage(w->source, name);
    }
    return true;
}

/* Close the innermost range of a kind and what is inside it; closed and n_closed tell which. */
TMK_WALK_INLINE void tmk_walk_close(struct tmk_walk *w, struct tmk_walk_thread *t, uint8_t kind)
{
    uint64_t i = t->n;
    while (i > 0 && t->ranges[i - 1].kind != kind)
        i--;
    if (i == 0)
        return;
    w->n_step_module_events += kind == TIDEMARK_MODULE;
    w->closed = &t->ranges[i - 1];
    w->n_closed = t->n - (i - 1);
    t->n = i - 1;
}

/* ---- the slow parts of tmk_walk_modules() (walk_modules.h) ---- */

int tmk_walk_skim(struct tmk_walk *w);
/* Find the thread of an event that is not before the one asked for last. */
int tmk_walk_find_thread(struct tmk_walk *w, uint64_t event);
int tmk_walk_skim_step(struct tmk_walk *w);
int tmk_walk_skim_other(struct tmk_walk *w);

#endif
