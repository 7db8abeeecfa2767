/* SPDX-License-Identifier: MIT */
/* record/pystack.c - see pystack.h. */
#include "record/pystack.h"

#include <string.h>
#include <sys/prctl.h>

#include "base/hash.h"
#include "record/intern.h"
#include "record/native.h"
#include "record/pyframe.h"

enum {
    MAX_LINE_BYTES = 1 << 16, /* of a code's line table; longer ones are left out */
    NAME_BYTES = 1024,
};

/* generation << 32 | stack, of the last call of backward() */
static _Atomic uint64_t backward;
static _Atomic uint32_t refusal_said; /* in which generation */

/* ---- definitions ---- */

static uint32_t intern_pytext(struct tmk_lane *lane, const struct tmk_pytext *text)
{
    char buffer[NAME_BYTES];
    return tmk_intern_text(lane, buffer, tmk_pytext_utf8(text, buffer, sizeof buffer));
}

static bool put_lines(struct tmk_lane *lane, uint32_t code, const struct tmk_pycode *c)
{
    if (c->n_line_bytes > MAX_LINE_BYTES)
        return true;
    for (size_t at = 0; at < c->n_line_bytes; at += TMK_STRING_MAX_BYTES) {
        size_t n = c->n_line_bytes - at;
        if (n > TMK_STRING_MAX_BYTES)
            n = TMK_STRING_MAX_BYTES;
        if (!tmk_lane_put_text(lane, TMK_KIND_DEF_LINES, code, (uint32_t)at, c->lines + at, n))
            return false;
    }
    return true;
}

/* Codes share the ids of frames: those are told apart by what they are used for, and one table
 * less has to be kept. */
static uint32_t intern_code(struct tmk_lane *lane, const struct tmk_pyframe *f)
{
    uint64_t hash = tmk_hash_u64(f->identity) | 1;
    uint32_t id = tmk_intern_known_frame(hash);
    if (id)
        return id;
    struct tmk_pycode c;
    tmk_pyframe_code(f->code, &c);
    uint64_t file = intern_pytext(lane, &c.file);
    uint32_t name = intern_pytext(lane, &c.name);
    id = tmk_intern_new_frame(hash);
    if (!id || !put_lines(lane, id, &c))
        return 0;
    tmk_lane_put(lane, TMK_KIND_DEF_CODE, 0, id, file << 32 | name,
                 (uint64_t)c.layout << 32 | c.first_line);
    tmk_intern_remember_frame(hash, id);
    return id;
}

static uint32_t intern_frame(struct tmk_lane *lane, const struct tmk_pyframe *f)
{
    uint64_t hash = tmk_hash_fold(f->identity, ~(uint64_t)f->offset) | 1;
    uint32_t id = tmk_intern_known_frame(hash);
    if (id)
        return id;
    uint32_t code = intern_code(lane, f);
    id = code ? tmk_intern_new_frame(hash) : 0;
    if (!id)
        return 0;
    tmk_lane_put(lane, TMK_KIND_DEF_CODE_FRAME, 0, id, code, f->offset);
    tmk_intern_remember_frame(hash, id);
    return id;
}

enum { MAX_IDS = TMK_PYFRAME_MAX + 1 };

/* Frame ids of this thread's Python stack: how many; 0 when there is no room for one of them, and
 * then the next time this stack comes it is tried again. */
static uint32_t python_frames(struct tmk_lane *lane, uint32_t ids[MAX_IDS])
{
    struct tmk_pystack s;
    uint32_t n = 0;
    tmk_pyframe_walk(&s);
    for (uint32_t i = 0; i < s.n_frames; i++)
        ids[n++] = intern_frame(lane, &s.frames[i]);
    if (s.cut)
        ids[n++] = tmk_intern_label_frame(lane, "[outer frames cut]");
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] == 0)
            return 0;
    return n;
}

__attribute__((noinline)) static uint32_t define_stack(struct tmk_lane *lane, uint64_t hash)
{
    uint32_t ids[MAX_IDS], n = python_frames(lane, ids);
    return n ? tmk_intern_define_stack(lane, hash, ids, n) : 0;
}

/* C and C++ frames down to the interpreter, then Python's; without those, C frames to the end. */
__attribute__((noinline)) static uint32_t native_stack(struct tmk_lane *lane)
{
    uint32_t ids[TMK_NATIVE_MAX_FRAMES + MAX_IDS];
    bool has_python = tmk_pyframe_ready() && tmk_pyframe_hash() != 0;
    uint32_t n = tmk_native_frames(lane, 0, has_python ? tmk_pyframe_range() : NULL, ids,
                                   TMK_NATIVE_MAX_FRAMES);
    if (has_python)
        n += python_frames(lane, ids + n);
    return tmk_intern_stack(lane, ids, n);
}

/* ---- threads without frames ---- */

static uint32_t define_thread_stack(struct tmk_lane *lane)
{
    char label[32] = "[thread ";
    prctl(PR_GET_NAME, label + 8, 0, 0, 0);
    label[8 + 15] = '\0';
    lane->is_autograd = strncmp(label + 8, "pt_autograd", 11) == 0;
    strcat(label, "]");
    lane->thread_stack = tmk_intern_label(lane, label);
    return lane->thread_stack;
}

static uint32_t stack_without_frames(struct tmk_lane *lane)
{
    uint32_t own = lane->thread_stack ? lane->thread_stack : define_thread_stack(lane);
    if (!lane->is_autograd)
        return own;
    uint64_t caller = atomic_load_explicit(&backward, memory_order_acquire);
    return caller >> 32 == lane->generation && (uint32_t)caller ? (uint32_t)caller : own;
}

/* ---- stacks ---- */

/* Once in a trace, where Python stacks cannot be had. */
static void say_refusal(struct tmk_lane *lane)
{
    const char *reason = tmk_pyframe_refusal();
    if (reason && atomic_exchange(&refusal_said, lane->generation) != lane->generation)
        tmk_lane_put_text(lane, TMK_KIND_MARK, tmk_intern_string(lane, "no Python stacks"), 0,
                          reason, strlen(reason));
}

/* Without Python, with native frames, or with none at all. */
__attribute__((noinline, cold)) static uint32_t unusual_stack(struct tmk_lane *lane)
{
    if (tmk_recorder.settings.no_stacks)
        return 0;
    if (tmk_recorder.settings.native)
        return native_stack(lane);
    say_refusal(lane);
    return stack_without_frames(lane);
}

/* Stacks of late, by hash: the hash and the generation, mixed, above the id. A training has a few
 * hundred of them, and comes back to each after it has gone through megabytes of other things: they
 * are kept together, in two pages, and not where the table of all scatters them. */
enum { RECENT = 1024, RECENT_ID_BITS = 20 };
static _Atomic uint64_t recent[RECENT];

static inline uint64_t recent_tag(const struct tmk_lane *lane, uint64_t hash)
{
    return ((hash ^ (uint64_t)lane->generation << 40) >> RECENT_ID_BITS) << RECENT_ID_BITS;
}

__attribute__((noinline)) static uint32_t stack_of_hash(struct tmk_lane *lane, uint64_t hash)
{
    uint32_t id = tmk_intern_known_stack(hash);
    if (id == 0)
        id = define_stack(lane, hash);
    if (id != 0 && id >> RECENT_ID_BITS == 0)
        atomic_store_explicit(&recent[hash % RECENT], recent_tag(lane, hash) | id,
                              memory_order_relaxed);
    return id;
}

__attribute__((hot)) uint32_t tmk_pystack_id(struct tmk_lane *lane)
{
    const struct tmk_settings *how = &tmk_recorder.settings;
    if (__builtin_expect(how->no_stacks || how->native || !tmk_pyframe_ready(), 0))
        return unusual_stack(lane);
    uint64_t hash = tmk_pyframe_hash();
    if (__builtin_expect(hash == 0, 0))
        return stack_without_frames(lane);
    uint64_t there = atomic_load_explicit(&recent[hash % RECENT], memory_order_relaxed);
    uint32_t id = there & ((1u << RECENT_ID_BITS) - 1);
    if (__builtin_expect((there ^ id) == recent_tag(lane, hash) && id != 0, 1))
        return id;
    return stack_of_hash(lane, hash);
}

void tmk_pystack_note_backward(struct tmk_lane *lane)
{
    uint64_t stack = tmk_pystack_id(lane);
    atomic_store_explicit(&backward, (uint64_t)lane->generation << 32 | stack,
                          memory_order_release);
}
