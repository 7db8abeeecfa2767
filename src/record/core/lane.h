/* SPDX-License-Identifier: MIT */
/* record/core/lane.h - the hot path: one thread's way into the ring.
 *
 * A lane is a thread's cursor in the ring page it owns. Writing an event is: check that the lane is
 * of the current generation (armed, and not forked away), take the next slot, fill it, publish. No
 * lock, no system call, no allocation.
 *
 *     struct tmk_lane *lane = tmk_lane_enter();   // NULL: not recording, or re-entered
 *     if (lane) { ... tmk_lane_put(lane, ...); tmk_lane_leave(lane); }
 *
 * Enter and leave are the guard against re-entry: a signal handler that interrupts us between them
 * and has events of its own finds the lane busy, and its event is counted as dropped. Busy is the
 * address of the frame that entered: found busy by a frame of the same stack that is not below it,
 * the other one is gone (a handler jumped out of it with siglongjmp), and the lane is taken over. A
 * handler on an alternate stack is not on the same.
 *
 * A vfork()ed child has the lane of its parent's thread, which waits. If it restricts its system
 * calls, the lane is lent to it: _exit() makes none for us. Whoever reports an event next is the
 * parent. */
#ifndef TMK_RECORD_LANE_H
#define TMK_RECORD_LANE_H

#include <stddef.h>

#include "base/clock.h"
#include "record/core/recorder.h"
#include "trace/layout.h"
#include "trace/ring.h"

enum { TMK_LANE_LENT = 1 }; /* no frame has this address */

struct tmk_lane {
    uint32_t generation; /* UINT32_MAX: no page yet; control's is never that */
    uint32_t thread;
    struct tmk_record *cursor;
    struct tmk_record *end;            /* of its page; NULL: it has none */
    const struct tmk_pyanchor *anchor; /* of the thread's Python stack (pyknown.h); NULL: none */
    uintptr_t busy;                    /* frame that has entered, 0: none; TMK_LANE_LENT */
    uintptr_t reporting;   /* frame of a hook that calls on and is called again by that, 0: none */
    uint32_t thread_stack; /* id of a stack that says the thread's name, 0: not made yet */
    uint8_t is_autograd : 1; /* by its name, when it was opened */
    uint8_t hook : 4;        /* of `reporting`: which, counted from 1 */
    bool is_block;           /* the last record is a block's that went the short way, or its tag */
    uint16_t last_stack, next_stack; /* pyknown.c: where the last was, and is likely to be next */
    uint32_t quiet; /* of autograd's: the backward that is on record (fast_path_line.h) */
};
_Static_assert(sizeof(struct tmk_lane) <= 64, "what late-loaded libraries can have of static TLS");

/* In one line, where libraries that are opened late may ask for that: what glibc takes of their
 * static TLS is aligned as its own descriptor is, to 64 bytes on x86-64 and to less elsewhere. */
#ifdef __x86_64__
#define TMK_LANE_TLS __attribute__((tls_model("initial-exec"), aligned(64)))
#else
#define TMK_LANE_TLS __attribute__((tls_model("initial-exec")))
#endif

/* One pointer-sized reach: initial-exec, so no call to find it; small, so that it fits the space
 * the loader keeps for libraries opened late. */
extern __thread struct tmk_lane tmk_lane TMK_LANE_TLS;

/* First event of a thread, or first after a fork: arm if needed, take a page. False: not recording.
 * Also for a lane beside the thread's own, which then must be closed. */
bool tmk_lane_open(struct tmk_lane *lane);
/* Its page will get no more records. */
void tmk_lane_close(struct tmk_lane *lane);
/* For tests: the lane has a page or none, and behind its last record the page is empty. */
bool tmk_lane_is_valid(const struct tmk_lane *lane);
/* The lane's page has no room for n slots: go to the next one. False: none is free. */
bool tmk_lane_next_page(struct tmk_lane *lane);
void tmk_lane_count_drop(void);
/* The lane was found busy. True when the frame that entered is gone, and the lane is the caller's;
 * else the event is counted as dropped. */
__attribute__((cold)) bool tmk_lane_take_over(const struct tmk_lane *lane, uintptr_t frame);
/* A name, stack, frame, stream or module found no room: what would have it is recorded without. */
void tmk_lane_count_unnamed(void);
/* A record of this kind found no room in the ring: one of the two. */
void tmk_lane_count_lost(uint8_t kind);

/* As a frame for `busy`: all that is called or interrupts from here on lies below it. */
static inline uintptr_t tmk_stack_pointer(void)
{
    uintptr_t pointer;
#ifdef __x86_64__
    __asm__ volatile("mov %%rsp, %0" : "=r"(pointer));
#else
    __asm__ volatile("mov %0, sp" : "=r"(pointer));
#endif
    return pointer;
}

/* For who has seen that the lane is not busy. */
static inline void tmk_lane_make_busy(struct tmk_lane *lane)
{
#ifdef __x86_64__
    __asm__ volatile("mov %%rsp, %0" : "=m"(lane->busy));
#else
    lane->busy = tmk_stack_pointer();
#endif
    atomic_signal_fence(memory_order_seq_cst);
}

static inline struct tmk_lane *tmk_lane_enter(void)
{
    struct tmk_lane *lane = &tmk_lane;
    if (__builtin_expect(lane->busy != 0, 0) &&
        !tmk_lane_take_over(lane, (uintptr_t)__builtin_frame_address(0)))
        return NULL;
    lane->busy = (uintptr_t)__builtin_frame_address(0);
    atomic_signal_fence(memory_order_seq_cst);
    uint32_t generation =
        atomic_load_explicit(&tmk_recorder.control->generation, memory_order_acquire);
    if (__builtin_expect(lane->generation != generation, 0) && !tmk_lane_open(lane)) {
        lane->busy = 0;
        return NULL;
    }
    return lane;
}

static inline void tmk_lane_leave(struct tmk_lane *lane)
{
    atomic_signal_fence(memory_order_seq_cst);
    lane->busy = 0;
}

/* Its line will be written: fetch it as the only one to have it. (Compilers emit an instruction
 * that leaves it with the others, too, for all that they are told; then the first write waits, and
 * with it whatever locks next. A processor that does not know this one takes it for none at all.)
 */
static inline void tmk_fetch_to_write(const void *at)
{
#ifdef __x86_64__
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)at));
#else
    __builtin_prefetch(at, 1);
#endif
}

/* A record of n slots, for which there is room. */
static inline struct tmk_record *tmk_lane_take(struct tmk_lane *lane, uint32_t n_slots)
{
    struct tmk_record *r = lane->cursor;
    lane->cursor += n_slots;
    tmk_fetch_to_write(r + 2 * n_slots); /* the packer had that line last; it comes meanwhile */
    return r;
}

/* Room for a record of n slots, or NULL: there is none. */
static inline struct tmk_record *tmk_lane_reserve(struct tmk_lane *lane, uint32_t n_slots)
{
    if (__builtin_expect(lane->end - lane->cursor < (ptrdiff_t)n_slots, 0) &&
        !tmk_lane_next_page(lane))
        return NULL;
    lane->is_block = false;
    return tmk_lane_take(lane, n_slots);
}

/* Fill a record of one slot that was reserved. */
static inline void tmk_lane_fill(struct tmk_record *r, uint64_t ticks, uint8_t kind,
                                 uint16_t device, uint32_t id, uint64_t a, uint64_t b)
{
    r->ticks = ticks;
    r->a = a;
    r->b = b;
    tmk_record_publish(
        r, (union tmk_record_head){{.kind = kind, .n_slots = 1, .device = device, .id = id}});
}

/* Write a one-slot record of a moment that is not before that of the lane's last. Without room it
 * is dropped (false), and counted if it is an event. */
static inline bool tmk_lane_put_at(struct tmk_lane *lane, uint64_t ticks, uint8_t kind,
                                   uint16_t device, uint32_t id, uint64_t a, uint64_t b)
{
    struct tmk_record *r = tmk_lane_reserve(lane, 1);
    if (__builtin_expect(!r, 0)) {
        tmk_lane_count_lost(kind);
        return false;
    }
    tmk_lane_fill(r, ticks, kind, device, id, a, b);
    return true;
}

/* The same, of now. */
static inline bool tmk_lane_put(struct tmk_lane *lane, uint8_t kind, uint16_t device, uint32_t id,
                                uint64_t a, uint64_t b)
{
    return tmk_lane_put_at(lane, tmk_clock_ticks(tmk_recorder.counter), kind, device, id, a, b);
}

/* Write a record with a text (see trace/drain.c): false when dropped. `high` goes above the
 * length in `a`. */
bool tmk_lane_put_text(struct tmk_lane *lane, uint8_t kind, uint32_t id, uint32_t high,
                       const void *text, size_t n);

/* The same, of a moment that is not before that of the lane's last. */
bool tmk_lane_put_text_at(struct tmk_lane *lane, uint64_t ticks, uint8_t kind, uint32_t id,
                          uint32_t high, const void *text, size_t n);

#endif
