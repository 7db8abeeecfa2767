/* SPDX-License-Identifier: MIT */
/* record/python/pystack.c - see pystack.h. */
#include "record/python/pystack.h"

#include <string.h>
#include <sys/prctl.h>

#include "base/hash.h"
#include "record/core/hot.h"
#include "record/core/intern.h"
#include "record/core/recorder.h"
#include "record/native/native.h"
#include "record/python/pyframe.h"
#include "record/python/pyframe_hot.h"
#include "trace/kinds.h"
#include "trace/layout.h"

enum {
    MAX_LINE_BYTES = 1 << 16, /* of a code object's line table; longer ones are left out */
    NAME_BYTES = 1024,
};

/* ---- definitions ---- */

static uint32_t intern_pytext(struct tmk_lane *lane, const struct tmk_pytext *text)
{
    char buffer[NAME_BYTES];
    return tmk_intern_text(lane, buffer, tmk_pytext_utf8(text, buffer, sizeof buffer));
}

/* How much of the line table goes into the record that begins at `at`. Entries of layout 311 are
 * not cut: each begins with its only byte that has the high bit. */
static size_t part_bytes(const struct tmk_pycode *c, size_t at)
{
    size_t n = c->n_line_bytes - at;
    if (n <= TMK_STRING_MAX_BYTES)
        return n;
    n = TMK_STRING_MAX_BYTES;
    if (c->layout == TMK_PY_LINES_311)
        while (n > 0 && !(c->lines[at + n] & 0x80))
            n--;
    return n > 0 ? n : TMK_STRING_MAX_BYTES;
}

static bool put_lines(struct tmk_lane *lane, uint32_t code, const struct tmk_pycode *c)
{
    if (c->n_line_bytes > MAX_LINE_BYTES)
        return true;
    uint8_t kind = c->layout == TMK_PY_LINES_311 ? TMK_KIND_DEF_LINES_311 : TMK_KIND_DEF_LINES;
    for (size_t at = 0, n; at < c->n_line_bytes; at += n) {
        n = part_bytes(c, at);
        if (!tmk_lane_put_text(lane, kind, code, (uint32_t)at, c->lines + at, n))
            return false;
    }
    return true;
}

/* The id of a code object, by its content and not by its address: a function that is made anew a
 * thousand times (exec, eval, a lambda in a loop) is one. Code objects share ids and table with
 * frames: what they are used for tells them apart, and there is one table less. */
static uint32_t intern_code(struct tmk_lane *lane, const struct tmk_pyframe *f)
{
    struct tmk_pycode c;
    tmk_pyframe_code(f->code, &c);
    size_t n_lines = c.n_line_bytes <= MAX_LINE_BYTES ? c.n_line_bytes : 0;
    uint64_t file = intern_pytext(lane, &c.file);
    uint32_t name = intern_pytext(lane, &c.name);
    uint64_t hash = tmk_hash_fold(tmk_hash_fold(file << 32 | name, c.first_line),
                                  tmk_hash_bytes(c.lines, n_lines)) |
                    1;
    uint32_t id = tmk_intern_known_frame(hash);
    if (id)
        return id;
    id = tmk_intern_new_frame(hash);
    if (!id || !put_lines(lane, id, &c) ||
        !tmk_lane_put(lane, TMK_KIND_DEF_CODE, 0, id, file << 32 | name,
                      (uint64_t)c.layout << 32 | c.first_line))
        return 0;
    tmk_intern_remember_frame(hash, id);
    return id;
}

static uint32_t intern_frame(struct tmk_lane *lane, const struct tmk_pyframe *f)
{
    uint32_t code = intern_code(lane, f);
    uint64_t hash = tmk_hash_fold(code, ~(uint64_t)f->offset) | 1;
    uint32_t id = code ? tmk_intern_known_frame(hash) : 0;
    if (id || !code)
        return id;
    id = tmk_intern_new_frame(hash);
    if (!id || !tmk_lane_put(lane, TMK_KIND_DEF_CODE_FRAME, 0, id, code, f->offset))
        return 0;
    tmk_intern_remember_frame(hash, id);
    return id;
}

enum { MAX_IDS = TMK_PYFRAME_MAX + 1 };

/* The frame ids of the calling thread's Python stack; returns how many. 0 when one of them found no
 * room; it is tried again the next time this stack comes. */
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

/* The frames of the last caller of backward(), for native stacks of autograd's threads, which go on
 * with them. */
static struct {
    atomic_flag busy;
    uint32_t generation, n;
    uint32_t ids[MAX_IDS];
} backward_caller = {.busy = ATOMIC_FLAG_INIT};

static void keep_caller(struct tmk_lane *lane)
{
    if (atomic_flag_test_and_set(&backward_caller.busy))
        return;
    backward_caller.generation = lane->generation;
    backward_caller.n = python_frames(lane, backward_caller.ids);
    atomic_flag_clear(&backward_caller.busy);
}

static uint32_t callers_frames(const struct tmk_lane *lane, uint32_t *ids)
{
    uint32_t n = 0;
    if (atomic_flag_test_and_set(&backward_caller.busy))
        return 0;
    if (backward_caller.generation == lane->generation) {
        n = backward_caller.n;
        memcpy(ids, backward_caller.ids, n * sizeof *ids);
    }
    atomic_flag_clear(&backward_caller.busy);
    return n;
}

/* ---- threads without frames ---- */

__attribute__((noinline, cold)) static uint32_t define_thread_stack(struct tmk_lane *lane)
{
    char label[32] = "[thread ";
    prctl(PR_GET_NAME, label + 8, 0, 0, 0);
    label[8 + 15] = '\0';
    strcat(label, "]");
    lane->thread_stack = tmk_intern_label(lane, label);
    return lane->thread_stack;
}

static inline uint32_t stack_without_frames(struct tmk_lane *lane)
{
    uint32_t own = lane->thread_stack ? lane->thread_stack : define_thread_stack(lane);
    if (!lane->is_autograd)
        return own;
    uint64_t last = atomic_load_explicit(&tmk_pyframe_hot.worker.backward, memory_order_acquire);
    return last >> 32 == lane->generation && (uint32_t)last ? (uint32_t)last : own;
}

/* ---- stacks ---- */

/* Say something once per trace. */
static void say_once(struct tmk_lane *lane, _Atomic uint32_t *said, const char *event,
                     const char *reason)
{
    if (reason && atomic_exchange(said, lane->generation) != lane->generation)
        tmk_lane_put_text(lane, TMK_KIND_MARK, tmk_intern_string(lane, event), 0, reason,
                          strlen(reason));
}

/* C and C++ frames down to the interpreter, then Python's frames. Without Python frames: all C
 * frames, then the frames of backward()'s caller, or the thread's name. */
static uint32_t native_python_stack(struct tmk_lane *lane)
{
    uint32_t ids[TMK_NATIVE_MAX_FRAMES + MAX_IDS];
    bool has_python = tmk_pyframe_ready() && tmk_pystack_known(lane).hash != 0;
    uint32_t n = tmk_native_frames(lane, 0, has_python ? tmk_pyframe_range() : NULL, ids,
                                   TMK_NATIVE_MAX_FRAMES);
    if (has_python)
        return tmk_intern_stack(lane, ids, n + python_frames(lane, ids + n));
    if (!lane->thread_stack)
        define_thread_stack(lane);
    uint32_t more = lane->is_autograd ? callers_frames(lane, ids + n) : 0;
    if (more == 0 && n == 0)
        return lane->thread_stack;
    return tmk_intern_stack(lane, ids, n + more);
}

uint32_t tmk_pystack_native_id(struct tmk_lane *lane)
{
    return native_python_stack(lane);
}

/* Stacks while no Python was found, with native frames, or with none at all. */
__attribute__((noinline, cold)) static uint32_t unusual_stack(struct tmk_lane *lane)
{
    static _Atomic uint32_t said;
    if (tmk_recorder.settings.no_stacks)
        return 0;
    bool is_ready = tmk_pyframe_ready();
    if (!is_ready)
        say_once(lane, &said, "no Python stacks", tmk_pyframe_refusal());
    if (tmk_recorder.settings.native)
        return native_python_stack(lane);
    return is_ready ? tmk_pystack_usual_id(lane) : stack_without_frames(lane);
}

__attribute__((noinline)) static uint32_t stack_of_hash(struct tmk_lane *lane, uint64_t hash)
{
    static _Atomic uint32_t said;
    uint32_t ids[MAX_IDS], id = tmk_pyknown_stack(hash);
    if (id)
        return id;
    uint32_t n = python_frames(lane, ids);
    id = n ? tmk_intern_stack(lane, ids, n) : 0;
    if (id)
        tmk_pyknown_remember(hash, id);
    else
        say_once(lane, &said, "stacks no longer recorded",
                 "there are more different ones than the recorder keeps, or the ring was full");
    return id;
}

/* Threads without frames come here too. */
TMK_HOT_CODE(5) uint32_t tmk_pystack_unknown(struct tmk_lane *lane, uint64_t hash)
{
    return hash ? stack_of_hash(lane, hash) : stack_without_frames(lane);
}

uint32_t tmk_pystack_id(struct tmk_lane *lane)
{
    return tmk_pystack_is_usual() ? tmk_pystack_usual_id(lane) : unusual_stack(lane);
}

/* Ignored when autograd's own thread calls backward, as checkpointing does: the stack of the outer
 * caller stays. */
void tmk_pystack_note_backward(struct tmk_lane *lane)
{
    if (!lane->thread_stack)
        define_thread_stack(lane);
    if (lane->is_autograd)
        return;
    if (tmk_recorder.settings.native) {
        if (tmk_pyframe_ready() && tmk_pystack_known(lane).hash != 0)
            keep_caller(lane);
        return;
    }
    uint64_t stack = tmk_pystack_id(lane);
    atomic_store_explicit(&tmk_pyframe_hot.worker.backward,
                          (uint64_t)lane->generation << 32 | stack, memory_order_release);
}
