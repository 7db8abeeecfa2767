/* SPDX-License-Identifier: MIT */
/* record/python/pyframe.h - the Python stack of the calling thread, read without the GIL.
 *
 * A thread that is inside a C call made from Python does not change its own frames, so it can read
 * them at any time, whoever holds the GIL. A frame is told by its code object and the offset of its
 * instruction; names and line table of a code object are written to the trace once, and lines are
 * found by the reader. */
#ifndef TMK_RECORD_PYFRAME_H
#define TMK_RECORD_PYFRAME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/core/thread_slot.h"
#include "record/loader/library.h"

enum { TMK_PYFRAME_MAX = 128 }; /* deeper stacks lose their outermost frames, and say so */

struct tmk_lane;
struct tmk_pyknown;
struct tmk_pyanchor;

struct tmk_pyframe {
    const void *code;
    uint32_t offset; /* of the instruction in the code's bytecode, in bytes */
};

struct tmk_pystack {
    uint32_t n_frames; /* innermost first */
    bool cut;          /* there were more */
    struct tmk_pyframe frames[TMK_PYFRAME_MAX];
};

struct tmk_pytext { /* a Python string: characters of `width` bytes, Latin-1 or wider */
    const uint8_t *characters;
    size_t n_characters;
    unsigned width;
};

struct tmk_pycode { /* what there is to know of a code object; borrowed while it is on a stack */
    struct tmk_pytext file, name;
    uint32_t first_line;
    uint16_t layout; /* enum tmk_py_lines */
    const uint8_t *lines;
    size_t n_line_bytes;
};

/* Look for an interpreter, until there is one. True when stacks can be read from now on. Slow. */
bool tmk_pyframe_look(void);
/* Why not, when there is an interpreter that cannot be read; NULL otherwise. */
const char *tmk_pyframe_refusal(void);

/* Which stack the calling thread has (pyknown.h), whose lane this is. */
typedef struct tmk_pyknown tmk_pyknown_function(struct tmk_lane *lane,
                                                const struct tmk_pyanchor *anchor);
/* The anchor of a call, inside another's; false when there is none. */
typedef bool tmk_pyknown_entry(struct tmk_pyanchor *ret, const struct tmk_pyanchor *before);

/* What stacks of autograd's threads need: torch has given each a state of Python's, too, but mostly
 * no frame is on it. */
struct tmk_pyframe_worker {
    struct tmk_thread_slot slot; /* as below */
    uint16_t thread_frame;       /* of the layout (pylayout.h), as the next two */
    uint16_t cframe_frame;
    bool indirect;
    _Atomic uint64_t backward; /* generation << 32 | stack, of its last call (pystack.c) */
};

/* What each stack needs, in one cache line, and what those do, in the next. */
struct tmk_pyframe_hot {
    tmk_pyknown_function *_Atomic find[2]; /* with an anchor: the second; NULL: not ready yet */
    struct tmk_thread_slot slot; /* of Python's state of this thread, where it was found */
    const void *main_interpreter;
    _Atomic uint64_t epoch; /* of stacks that are known (pyknown.h) */
    tmk_pyknown_entry *_Atomic enter;
    _Alignas(64) struct tmk_pyframe_worker worker;
};
_Static_assert(sizeof(struct tmk_pyframe_hot) <= 128, "two lines");
extern struct tmk_pyframe_hot tmk_pyframe_hot;

/* The calling thread runs no Python function. False also when it is not known. */
static inline bool tmk_pyframe_is_idle(void)
{
    const struct tmk_pyframe_worker *w = &tmk_pyframe_hot.worker;
    void *thread;
    if (__builtin_expect(!tmk_thread_slot_read(&w->slot, &thread), 0))
        return false;
    const void *frame = thread ? *(void *const *)((const char *)thread + w->thread_frame) : NULL;
    if (frame && w->indirect)
        frame = *(void *const *)((const char *)frame + w->cframe_frame);
    return !frame;
}

static inline bool tmk_pyframe_is_ready(void)
{
    return atomic_load_explicit(&tmk_pyframe_hot.find[0], memory_order_acquire) != NULL;
}

/* The same, and looks for an interpreter if not. */
static inline bool tmk_pyframe_ready(void)
{
    return __builtin_expect(tmk_pyframe_is_ready(), 1) || tmk_pyframe_look();
}

/* Where the interpreter's code lies: native frames from there on are Python's own. */
const struct tmk_code_range *tmk_pyframe_range(void);

/* The stack of this thread itself. */
void tmk_pyframe_walk(struct tmk_pystack *ret);

/* The code object of a frame just walked. */
void tmk_pyframe_code(const void *code, struct tmk_pycode *ret);

/* A Python string as UTF-8, cut at `size` bytes; returns the length. No zero byte is added. */
size_t tmk_pytext_utf8(const struct tmk_pytext *t, char *buffer, size_t size);

#endif
