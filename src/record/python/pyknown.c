/* SPDX-License-Identifier: MIT */
/* record/python/pyknown.c - see pyknown.h.
 *
 * Code objects die and their addresses are used again, for another function in half of the cases.
 * From 3.12 on each carries a number that no other has had. Before, the identity of a code object
 * covers, beside its address, its first line and the hashes that CPython keeps in the strings of
 * its name and file; that costs two more cache lines per frame. While Python tells when code
 * objects die (pycodes.h), none of this is read. */
#include "record/python/pyknown.h"

#include <stdatomic.h>
#include <string.h>

#include "base/bytes.h"
#include "record/core/hot.h"
#include "record/core/lane.h"
#include "record/core/thread_slot.h"
#include "record/python/pyframe_hot.h"
#include "record/python/pylayout.h"
#include "record/python/pyread.h"

/* ---- frames ---- */

static inline uint64_t hash_of_text(const struct tmk_pylayout *l, const void *code, uint16_t field)
{
    return tmk_load_u64((const uint8_t *)tmk_pyread_pointer(code, field) + l->text_hash);
}

/* Compute x on its own. The compiler would otherwise add its terms to the hash one by one, and the
 * next frame would wait for all of them. */
static inline uint64_t compute_apart(uint64_t x)
{
    __asm__("" : "+r"(x));
    return x;
}

/* The fields that tell a code object from another that was at its address before. */
static inline uint64_t identity_of_code(const struct tmk_pylayout *l, const void *code)
{
    if (l->code_version) {
        uint32_t version = tmk_load_u32((const uint8_t *)code + l->code_version);
        if (__builtin_expect(version != 0,
                             1)) /* 0: four thousand million numbers have been given out */
            return version;
    }
    uint64_t first_line = tmk_load_u32((const uint8_t *)code + l->code_first_line);
    return compute_apart(hash_of_text(l, code, l->code_name) +
                         2 * hash_of_text(l, code, l->code_file) + 8 * first_line);
}

/* Address and instruction of a frame's code in one number: the instruction's address, if the frame
 * has it. */
static inline uint64_t place_of_frame(const struct tmk_pylayout *l, const void *frame,
                                      const void *code)
{
    const uint8_t *at = (const uint8_t *)frame + l->frame_instruction;
    if (l->count_scale)
        return compute_apart((uintptr_t)code + ((uint64_t)tmk_load_u32(at) << 32));
    return tmk_load_u64(at);
}

static const uint64_t odd_factor = 0x9e3779b97f4a7c15u;

/* The start of a hash. It differs between recordings, and after code objects died, so that what was
 * known before is not taken for known. Starts are far apart, because the next frame's place is
 * added and places are near each other. (`factor` is `odd_factor`, in a register.) */
static inline uint64_t start_of_hash(uint32_t generation, uint64_t factor)
{
    return (generation + atomic_load(&tmk_pyframe_hot.epoch)) * factor;
}

/* True when a frame is part of the hash. While code objects are watched (pycodes.h) frames are not
 * told apart, and entries from C are part of it too. */
static inline bool is_frame_hashed(const struct tmk_pylayout *l, bool is_watched, const void *frame)
{
    return is_watched || tmk_pyread_is_function(l, frame, tmk_pyread_code(l, frame));
}

/* Add one more frame to a hash. */
__attribute__((always_inline)) static inline uint64_t hash_frame(const struct tmk_pylayout *l,
                                                                 bool is_watched, const void *frame,
                                                                 uint64_t hash, uint64_t factor)
{
    const void *code = is_watched ? NULL : tmk_pyread_code(l, frame);
    if (!is_frame_hashed(l, is_watched, frame))
        return hash;
    uint64_t what = place_of_frame(l, frame, code);
    if (!is_watched)
        what += identity_of_code(l, code) * 0xbf58476d1ce4e5b9u;
    return (hash + what) * factor;
}

/* The frame that the hash begins with. What is called while a thread's outermost function ends,
 * such as a destructor, has only the entry from C: that is no stack. */
static inline const void *first_frame(const struct tmk_pylayout *l, bool is_watched,
                                      const void *thread)
{
    const void *top = tmk_pyread_top(l, thread);
    return is_watched && top && tmk_pyread_is_entry(l, top) ? tmk_pyread_pointer(top, l->frame_back)
                                                            : top;
}

/* ---- where they lay ---- */

/* All frames that are recorded and one more, and the entries from C between them. */
enum { MOST_FRAMES = 2 * (TMK_PYFRAME_MAX + 1) };

/* Where the frames of a stack were, the outermost first, behind a 0. Most are there again the next
 * time. By this list, and not by the chain of their pointers, which only has to agree, the
 * processor fetches all frames at once instead of each in turn. The list is never trusted, so
 * threads may share one. */
enum { N_HINTS = 8, MOST_HINTS = 254 };
struct hints {
    _Alignas(64) _Atomic uint64_t n;
    _Atomic uintptr_t frames[1 + MOST_HINTS];
};
static struct hints all_hints[N_HINTS];

static inline struct hints *hints_of(uint32_t number)
{
    return &all_hints[number % N_HINTS];
}

/* Read once before it is followed: another thread may write it. */
static inline const void *read_hint(const _Atomic uintptr_t *hint)
{
    return (const void *)atomic_load_explicit(hint, memory_order_relaxed);
}

/* Hash the frames by the chain, from the first one on, and keep where they are. Above them some of
 * the entries from before stay: the program may soon be as deep again. Stacks that are deeper than
 * what is recorded of them are not kept. */
__attribute__((always_inline)) static inline uint64_t
learn_frames(const struct tmk_pylayout *l, bool is_watched, const void *frame, uint64_t start,
             struct hints *hints)
{
    enum { MOST_LEFT = 16 };
    const void *chain[MOST_FRAMES];
    uint64_t n = 0, n_before = atomic_load_explicit(&hints->n, memory_order_relaxed);
    uint64_t hash = start;
    for (; frame && n < MOST_FRAMES; frame = tmk_pyread_pointer(frame, l->frame_back)) {
        hash = hash_frame(l, is_watched, frame, hash, odd_factor);
        chain[n++] = frame;
    }
    if (frame || n > MOST_HINTS)
        return hash;
    for (uint64_t i = 0; i < n; i++)
        atomic_store_explicit(&hints->frames[n - i], (uintptr_t)chain[i], memory_order_relaxed);
    uint64_t most = n + MOST_LEFT;
    if (n_before > n)
        n = n_before < most ? n_before : most;
    atomic_store_explicit(&hints->n, n, memory_order_relaxed);
    return hash;
}

/* ---- stacks of late ---- */

/* Recent stacks by hash. An entry has the hash's upper bits and, at the low end, the stack's id;
 * other bits of the hash give its place. Entries are together in four pages, not scattered over a
 * large table. Each is in its place or, after another came, in the one beside it. Behind it is a
 * larger table, for programs that have more stacks, or the same stack under many hashes because
 * code is made anew.
 *
 * The bits between hash and id are the place of the stack that came after this one the last time. A
 * training comes to each of its stacks once a step, when the caches have forgotten it, and always
 * in the same order: so the next one's place is fetched meanwhile. */
enum { RECENT_BITS = 11, RECENT = 1 << RECENT_BITS, KEPT = 1 << 16, ID_BITS = 20 };
enum { TAG_BITS = 64 - ID_BITS - RECENT_BITS };
static _Atomic uint64_t recent_stacks[RECENT] __attribute__((aligned(64)));
static _Atomic uint64_t kept_stacks[KEPT];

static inline uint32_t recent_index(uint64_t hash)
{
    return (uint32_t)(hash >> ID_BITS) & (RECENT - 1);
}

static inline _Atomic uint64_t *kept_place(uint64_t hash)
{
    return &kept_stacks[hash >> 4 & (KEPT - 1)];
}

static inline uint32_t id_in(uint64_t there, uint64_t hash)
{
    return (there ^ hash) >> (64 - TAG_BITS) == 0 ? there & ((1u << ID_BITS) - 1) : 0;
}

static inline uint32_t id_at(_Atomic uint64_t *place, uint64_t hash)
{
    return id_in(atomic_load_explicit(place, memory_order_relaxed), hash);
}

uint32_t tmk_pyknown_stack(uint64_t hash)
{
    uint32_t id = id_at(&recent_stacks[recent_index(hash) ^ 1], hash);
    if (id == 0 && (id = id_at(kept_place(hash), hash)) != 0)
        tmk_pyknown_remember(hash, id);
    return id;
}

void tmk_pyknown_remember(uint64_t hash, uint32_t stack)
{
    uint64_t entry = hash >> (64 - TAG_BITS) << (64 - TAG_BITS) | stack;
    if (stack >> ID_BITS != 0)
        return;
    uint32_t i = recent_index(hash);
    uint64_t there = atomic_load_explicit(&recent_stacks[i], memory_order_relaxed);
    atomic_store_explicit(&recent_stacks[i ^ 1], there, memory_order_relaxed);
    atomic_store_explicit(&recent_stacks[i], entry, memory_order_relaxed);
    atomic_store_explicit(kept_place(hash), entry, memory_order_relaxed);
}

/* ---- finding ---- */

#define NO_STACK ((struct tmk_pyknown){0, 0})

/* Take the stack in this place, if the hash is its, and fetch the place of the one that follows. */
static inline struct tmk_pyknown take_known(struct tmk_lane *lane, uint64_t hash, uint32_t i)
{
    uint64_t there = atomic_load_explicit(&recent_stacks[i], memory_order_relaxed);
    uint32_t next = (uint32_t)(there >> ID_BITS) & (RECENT - 1);
    __builtin_prefetch((const void *)&recent_stacks[next]);
    lane->last_stack = (uint16_t)i;
    lane->next_stack = (uint16_t)next;
    return (struct tmk_pyknown){id_in(there, hash), hash};
}

/* After the lane's last stack comes another one than the time before: remember that. (If another
 * thread writes that entry meanwhile, one of the two is lost, and comes again.) */
TMK_HOT_CODE(5)
__attribute__((noinline)) static struct tmk_pyknown known_anew(struct tmk_lane *lane, uint64_t hash)
{
    uint32_t i = recent_index(hash);
    _Atomic uint64_t *last = &recent_stacks[lane->last_stack];
    uint64_t there = atomic_load_explicit(last, memory_order_relaxed);
    there &= ~((uint64_t)(RECENT - 1) << ID_BITS);
    atomic_store_explicit(last, there | (uint64_t)i << ID_BITS, memory_order_relaxed);
    return take_known(lane, hash, i);
}

/* One line may make several blocks in a row: a stack is not what comes after itself. */
__attribute__((always_inline)) static inline struct tmk_pyknown known_by(struct tmk_lane *lane,
                                                                         uint64_t hash)
{
    uint32_t i = recent_index(hash);
    if (__builtin_expect(lane->next_stack != i, 0) && lane->last_stack != i)
        return known_anew(lane, hash);
    return take_known(lane, hash, i);
}

/* Hash the frames from this one on. False when too many of them are elsewhere than the hints say.
 *
 * Functions' frames mostly lie one above the other, so hints above a frame are skipped.
 * (Generators' frames lie elsewhere; entries from C lie above.) From a frame that is where a hint
 * says, the loop follows the hints, down to the last one or to a frame that now has another below
 * it, which is then looked for in turn. */
__attribute__((always_inline)) static inline bool hash_frames(const struct tmk_pylayout *l,
                                                              bool is_watched, const void *frame,
                                                              const struct hints *hints,
                                                              uint64_t factor, uint64_t *hash)
{
    enum { FEW = 8 };
    const _Atomic uintptr_t *known =
        hints->frames + atomic_load_explicit(&hints->n, memory_order_relaxed);
    unsigned n_left = FEW + 1;
    const void *there, *below;
    for (;;) {
        there = read_hint(known);
        while ((uintptr_t)there > (uintptr_t)frame)
            there = read_hint(--known);
        if (there != frame) {
            if (__builtin_expect(--n_left == 0, 0))
                return false;
            *hash = hash_frame(l, is_watched, frame, *hash, factor);
            frame = tmk_pyread_pointer(frame, l->frame_back);
            continue;
        }
        do {
            if (!frame)
                return true;
            below = tmk_pyread_pointer(frame, l->frame_back);
            there = read_hint(--known);
            *hash = hash_frame(l, is_watched, frame, *hash, factor);
            frame =
                (const void *)compute_apart((uintptr_t)there); /* not `below`, which arrives late */
        } while (__builtin_expect(below == there, 1));
        frame = below;
    }
}

/* ---- anchors ---- */

/* True for the anchor of a call that has ended without notice: a handler jumped out of it. */
static inline bool is_anchor_gone(const struct tmk_pyanchor *anchor)
{
    return (uintptr_t)anchor < tmk_stack_pointer();
}

/* Hash only the frames above the anchor's frame. False when that frame is not among the next
 * few. */
__attribute__((always_inline)) static inline bool hash_above(const struct tmk_pylayout *l,
                                                             bool is_watched, const void *frame,
                                                             const struct tmk_pyanchor *anchor,
                                                             uint64_t factor, uint64_t *hash)
{
    unsigned n_left = 16;
    if (__builtin_expect(is_anchor_gone(anchor), 0))
        return false;
    for (; frame != anchor->frame; frame = tmk_pyread_pointer(frame, l->frame_back)) {
        if (__builtin_expect(!frame || --n_left == 0, 0))
            return false;
        *hash = hash_frame(l, is_watched, frame, *hash, factor);
    }
    *hash = *hash * anchor->power + anchor->outer;
    return true;
}

__attribute__((always_inline)) static inline bool enter_anchor(const struct tmk_pylayout *l,
                                                               bool is_watched,
                                                               struct tmk_pyanchor *ret,
                                                               const struct tmk_pyanchor *before)
{
    const void *frame = first_frame(l, is_watched, tmk_pyread_thread());
    const void *stop = before ? before->frame : NULL;
    uint64_t outer = 0, power = 1;
    unsigned n_left = MOST_FRAMES;
    ret->frame = frame;
    if (!frame)
        return false;
    for (; frame && frame != stop; frame = tmk_pyread_pointer(frame, l->frame_back)) {
        if (--n_left == 0)
            return false;
        outer = hash_frame(l, is_watched, frame, outer, odd_factor);
        power *= is_frame_hashed(l, is_watched, frame) ? odd_factor : 1;
    }
    ret->outer = frame ? outer * before->power + before->outer : outer;
    ret->power = frame ? power * before->power : power;
    return true;
}

/* For each layout one set of functions, in which offsets are constants. Beside find, without an
 * anchor and with one, there are functions for frames that are elsewhere than expected, and for
 * threads whose Python state has to be asked for. (A stack that consists only of frames that are no
 * functions, where those are told apart, is none: the hash is still its start.) */
#define FIND(order, order_of_calls, name, layout, is_watched)                                      \
    __attribute__((noinline)) static struct tmk_pyknown learn_##name(struct tmk_lane *lane)        \
    {                                                                                              \
        uint64_t start = start_of_hash(lane->generation, odd_factor);                              \
        const void *frame = first_frame(&(layout), is_watched, tmk_pyread_thread());               \
        uint64_t hash = learn_frames(&(layout), is_watched, frame, start, hints_of(lane->thread)); \
        return hash == start ? NO_STACK : known_anew(lane, hash);                                  \
    }                                                                                              \
    __attribute__((always_inline)) static inline struct tmk_pyknown follow_##name(                 \
        const void *thread, struct tmk_lane *lane)                                                 \
    {                                                                                              \
        const void *frame = first_frame(&(layout), is_watched, thread);                            \
        if (!frame)                                                                                \
            return NO_STACK;                                                                       \
        const uint64_t factor = compute_apart(odd_factor);                                         \
        uint64_t start = start_of_hash(lane->generation, factor), hash = start;                    \
        if (__builtin_expect(                                                                      \
                !hash_frames(&(layout), is_watched, frame, hints_of(lane->thread), factor, &hash), \
                0))                                                                                \
            return learn_##name(lane);                                                             \
        return !(is_watched) && hash == start ? NO_STACK : known_by(lane, hash);                   \
    }                                                                                              \
    __attribute__((noinline)) static struct tmk_pyknown ask_##name(struct tmk_lane *lane)          \
    {                                                                                              \
        return follow_##name(tmk_pyframe_runtime.this_thread(), lane);                             \
    }                                                                                              \
    TMK_HOT_CODE(order)                                                                            \
    static struct tmk_pyknown find_##name(struct tmk_lane *lane,                                   \
                                          const struct tmk_pyanchor *anchor)                       \
    {                                                                                              \
        void *thread;                                                                              \
        (void)anchor;                                                                              \
        if (__builtin_expect(!tmk_thread_slot_read(&tmk_pyframe_hot.slot, &thread), 0))            \
            return ask_##name(lane);                                                               \
        return follow_##name(thread, lane);                                                        \
    }                                                                                              \
    TMK_HOT_CODE(order)                                                                            \
    static struct tmk_pyknown find_above_##name(struct tmk_lane *lane,                             \
                                                const struct tmk_pyanchor *anchor)                 \
    {                                                                                              \
        void *thread;                                                                              \
        if (__builtin_expect(!tmk_thread_slot_read(&tmk_pyframe_hot.slot, &thread), 0))            \
            return ask_##name(lane);                                                               \
        const void *frame = first_frame(&(layout), is_watched, thread);                            \
        if (!frame)                                                                                \
            return NO_STACK;                                                                       \
        const uint64_t factor = compute_apart(odd_factor);                                         \
        uint64_t hash = start_of_hash(lane->generation, factor);                                   \
        if (__builtin_expect(!hash_above(&(layout), is_watched, frame, anchor, factor, &hash), 0)) \
            return find_##name(lane, NULL);                                                        \
        return known_by(lane, hash);                                                               \
    }                                                                                              \
    TMK_HOT_CODE(order_of_calls)                                                                   \
    static bool enter_##name(struct tmk_pyanchor *ret, const struct tmk_pyanchor *before)          \
    {                                                                                              \
        return enter_anchor(&(layout), is_watched, ret, before);                                   \
    }
FIND(6, 6, 3_9, tmk_pylayout_known[TMK_PYLAYOUT_3_9], false)
FIND(6, 6, 3_10, tmk_pylayout_known[TMK_PYLAYOUT_3_10], false)
FIND(3, 5, 3_11, tmk_pylayout_known[TMK_PYLAYOUT_3_11], false)
FIND(6, 6, 3_12, tmk_pylayout_known[TMK_PYLAYOUT_3_12], false)
FIND(3, 5, 3_12_watched, tmk_pylayout_known[TMK_PYLAYOUT_3_12], true)
FIND(6, 6, 3_13, tmk_pylayout_usual_3_13, false)
FIND(3, 5, 3_13_watched, tmk_pylayout_usual_3_13, true)
FIND(6, 6, published, tmk_pyframe_runtime.layout, false)

struct stack_reader {
    tmk_pyknown_function *find, *find_above;
    tmk_pyknown_entry *enter;
};
#define READER(name) ((struct stack_reader){find_##name, find_above_##name, enter_##name})

static struct stack_reader reader_of(const struct tmk_pylayout *l, bool is_watched)
{
    if (memcmp(l, &tmk_pylayout_usual_3_13, sizeof *l) == 0)
        return is_watched ? READER(3_13_watched) : READER(3_13);
    switch (l->minor) {
    case 9:
        return READER(3_9);
    case 10:
        return READER(3_10);
    case 11:
        return READER(3_11);
    case 12:
        return is_watched ? READER(3_12_watched) : READER(3_12);
    default:
        return READER(published);
    }
}

TMK_HOT_CODE(5)
const struct tmk_pyanchor *tmk_pyknown_enter(struct tmk_pyanchor *ret,
                                             const struct tmk_pyanchor *before)
{
    tmk_pyknown_entry *by = atomic_load_explicit(&tmk_pyframe_hot.enter, memory_order_acquire);
    if (before && is_anchor_gone(before))
        before = NULL;
    return by && by(ret, before) ? ret : before;
}

/* Stacks of C may be put aside and taken back in another order (greenlets). Then somebody may still
 * point to this anchor; no frame is at 1. */
TMK_HOT_CODE(5)
const struct tmk_pyanchor *tmk_pyknown_leave(struct tmk_pyanchor *anchor,
                                             const struct tmk_pyanchor *before)
{
    anchor->frame = (const void *)1;
    __asm__ volatile("" : : "r"(anchor) : "memory"); /* store it, though nobody here reads it */
    return before && is_anchor_gone(before) ? NULL : before;
}

bool tmk_pyknown_can_be_watched(void)
{
    const struct tmk_pylayout *l = &tmk_pyframe_runtime.layout;
    return tmk_pyframe_is_ready() && reader_of(l, true).find != reader_of(l, false).find;
}

/* Hashes of the two modes mean nothing to each other. (An anchor of the one mode with frames of the
 * other above it is one more unknown stack.) */
void tmk_pyknown_set_watched(bool is_watched)
{
    struct stack_reader reader = reader_of(&tmk_pyframe_runtime.layout, is_watched);
    tmk_pyknown_forget();
    atomic_store_explicit(&tmk_pyframe_hot.enter, reader.enter, memory_order_release);
    atomic_store_explicit(&tmk_pyframe_hot.find[1], reader.find_above, memory_order_release);
    atomic_store_explicit(&tmk_pyframe_hot.find[0], reader.find, memory_order_release);
}

void tmk_pyknown_forget(void)
{
    atomic_fetch_add(&tmk_pyframe_hot.epoch, UINT64_C(1)
                                                 << 32); /* generations are in the lower half */
}
