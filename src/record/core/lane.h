/* SPDX-License-Identifier: MIT */
/* record/core/lane.h - the hot path: one thread's way into the ring.
 *
 * A lane is a thread's cursor in the ring page that it owns. Writing an event is: check that the
 * lane is of the current generation (armed, and not forked away), take the next slot, fill it,
 * publish it. There is no lock, no system call and no allocation.
 *
 *     struct tmk_lane *lane = tmk_lane_enter();   // NULL: not recording, or re-entered
 *     if (lane) { ... tmk_lane_put(lane, ...); tmk_lane_leave(lane); }
 *
 * Enter and leave guard against re-entry: a signal handler that interrupts us between them finds
 * the lane busy, and its event is counted as dropped. `busy` is the address of the frame that
 * entered. When a frame of the same stack that is not below it finds the lane busy, the frame that
 * entered is gone (a handler jumped out of it with siglongjmp), and the lane is taken over. A
 * handler on an alternate stack is on another stack.
 *
 * A vfork()ed child uses the lane of its parent's thread, which waits. If the child restricts its
 * system calls, the lane is lent to it: our _exit() then makes no system calls. Whoever reports the
 * next event is the parent again. */
#ifndef TMK_RECORD_LANE_H
#define TMK_RECORD_LANE_H

#include <stddef.h>

#include "base/clock.h"
#include "record/core/recorder.h"
#include "trace/layout.h"
#include "trace/ring.h"

enum { TMK_LANE_LENT = 1 }; /* instead of a frame's address */

struct tmk_lane {
    uint32_t generation; /* the recording it is open for; UINT32_MAX: it has no page */
    uint32_t thread;
    struct tmk_record *cursor;
    struct tmk_record *end;            /* end of its page; NULL: it has none */
    const struct tmk_pyanchor *anchor; /* of its Python stack (pyknown.h); NULL: none */
    uintptr_t busy;        /* address of the frame that has entered; 0: none; or TMK_LANE_LENT */
    uintptr_t reporting;   /* frame of a hook that calls on and may be called again; 0: none */
    uint32_t thread_stack; /* id of the stack that has the thread's name; 0: not made yet */
    /* the thread is one of autograd's, by its name when the lane was opened */
    uint8_t is_autograd : 1;
    uint8_t hook : 4; /* which hook `reporting` is, counted from 1 */
    bool is_block;    /* the last record is a block's from the fast path, or its tag */
    /* pyknown.c: place of the last stack, and of the one that is likely next */
    uint16_t last_stack, next_stack;
    uint32_t quiet; /* autograd's threads: the backward that is on record (fast_path_line.h) */
};
_Static_assert(sizeof(struct tmk_lane) <= 64, "what late-loaded libraries can have of static TLS");

/* Keep the lane in one cache line where that can be asked for. In libraries that are opened late,
 * glibc aligns static TLS as its own thread descriptor: to 64 bytes on x86-64, to less
 * elsewhere. */
#ifdef __x86_64__
#define TMK_LANE_TLS __attribute__((tls_model("initial-exec"), aligned(64)))
#else
#define TMK_LANE_TLS __attribute__((tls_model("initial-exec")))
#endif

/* The calling thread's lane. initial-exec: no function is called to find it. It is small, so that
 * it fits the space that the loader keeps for libraries opened late. */
extern __thread struct tmk_lane tmk_lane TMK_LANE_TLS;

/* Open the lane for the first event of a thread, or the first one after a fork: arm if needed, take
 * a page. False: not recording. Also opens a lane beside the thread's own; the caller must close
 * that one. */
bool tmk_lane_open(struct tmk_lane *lane);
/* Close the lane: its page gets no more records. */
void tmk_lane_close(struct tmk_lane *lane);
/* Check the lane's invariant, in tests: it has a page or none, and behind its last record the page
 * is empty. */
bool tmk_lane_is_valid(const struct tmk_lane *lane);
/* Go to the next page, because this one has no room for n slots. False: no page is free. */
bool tmk_lane_next_page(struct tmk_lane *lane);
void tmk_lane_count_drop(void);
/* Called when the lane is found busy. True when the frame that entered is gone, and the lane is the
 * caller's; otherwise the event is counted as dropped. */
__attribute__((cold)) bool tmk_lane_take_over(const struct tmk_lane *lane, uintptr_t frame);
/* Count a name, stack, frame, stream or module that found no room: events are recorded without
 * it. */
void tmk_lane_count_unnamed(void);
/* Count a record of this kind that found no room in the ring: as dropped or as unnamed. */
void tmk_lane_count_lost(uint8_t kind);

/* A frame address for `busy`: whatever is called or interrupts from here on is below it. */
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

/* Mark the lane busy, for callers that have seen that it is not. */
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

/* Fetch a cache line that will be written, as its only owner. (Compilers emit an instruction that
 * leaves it shared, whatever they are told; then the first write waits, and with it the next lock.
 * A processor that does not know `prefetchw` ignores it.) */
static inline void tmk_fetch_to_write(const void *at)
{
#ifdef __x86_64__
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)at));
#else
    __builtin_prefetch(at, 1);
#endif
}

/* Take a record of n slots; there must be room. */
static inline struct tmk_record *tmk_lane_take(struct tmk_lane *lane, uint32_t n_slots)
{
    struct tmk_record *r = lane->cursor;
    lane->cursor += n_slots;
    tmk_fetch_to_write(r + 2 * n_slots); /* the packer had that line last; it arrives meanwhile */
    return r;
}

/* Make room for a record of n slots and take it; NULL: there is no room. */
static inline struct tmk_record *tmk_lane_reserve(struct tmk_lane *lane, uint32_t n_slots)
{
    if (__builtin_expect(lane->end - lane->cursor < (ptrdiff_t)n_slots, 0) &&
        !tmk_lane_next_page(lane))
        return NULL;
    lane->is_block = false;
    return tmk_lane_take(lane, n_slots);
}

/* Fill and publish a reserved record of one slot. */
static inline void tmk_lane_fill(struct tmk_record *r, uint64_t ticks, uint8_t kind,
                                 uint16_t device, uint32_t id, uint64_t a, uint64_t b)
{
    r->ticks = ticks;
    r->a = a;
    r->b = b;
    tmk_record_publish(
        r, (union tmk_record_head){{.kind = kind, .n_slots = 1, .device = device, .id = id}});
}

/* Write a one-slot record with this timestamp, which is not before that of the lane's last record.
 * False: there was no room; an event is counted as dropped. */
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

/* The same, with the time of now. */
static inline bool tmk_lane_put(struct tmk_lane *lane, uint8_t kind, uint16_t device, uint32_t id,
                                uint64_t a, uint64_t b)
{
    return tmk_lane_put_at(lane, tmk_clock_ticks(tmk_recorder.counter), kind, device, id, a, b);
}

/* Write a record with a text (see trace/drain.c). `high` goes above the text's length in `a`.
 * False: it was dropped. */
bool tmk_lane_put_text(struct tmk_lane *lane, uint8_t kind, uint32_t id, uint32_t high,
                       const void *text, size_t n);

/* The same, with a timestamp that is not before that of the lane's last record. */
bool tmk_lane_put_text_at(struct tmk_lane *lane, uint64_t ticks, uint8_t kind, uint32_t id,
                          uint32_t high, const void *text, size_t n);

#endif
