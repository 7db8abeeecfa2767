/* SPDX-License-Identifier: MIT */
/* record/pyframe.h - the Python stack of the calling thread, read without the GIL.
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

#include "record/library.h"
#include "record/thread_slot.h"

enum { TMK_PYFRAME_MAX = 128 }; /* deeper stacks lose their outermost frames, and say so */

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

/* Where the frames of a stack lay when one was last looked at, the outermost first, behind a 0.
 * Most are there again the next time. Going by these, and not by the chain of their pointers, which
 * then only has to say the same, the processor fetches them all at once instead of each in turn.
 * Never trusted, so that threads may share one. */
enum { TMK_PYFRAME_HINTS = 126 };
struct tmk_pyframe_hints {
    _Alignas(64) _Atomic uint64_t n;
    _Atomic uintptr_t frames[1 + TMK_PYFRAME_HINTS];
};

/* What each stack needs, in one cache line. */
struct tmk_pyframe_hot {
    /* NULL until stacks can be read. Then a hash of this thread's stack, `thread` being Python's
     * state of it: equal hashes mean equal stacks; 0 when it has none. */
    uint64_t (*_Atomic hash)(const void *thread, struct tmk_pyframe_hints *hints);
    struct tmk_thread_slot slot; /* of this thread's state, where it was found */
    void *(*this_thread)(void);  /* else of the runtime, as the next */
    const void *main_interpreter;
    _Atomic uint64_t epoch; /* of stacks that are known (pycodes.h) */
};
extern struct tmk_pyframe_hot tmk_pyframe_hot;

static inline bool tmk_pyframe_ready(void)
{
    bool known = atomic_load_explicit(&tmk_pyframe_hot.hash, memory_order_acquire) != NULL;
    return __builtin_expect(known, 1) || tmk_pyframe_look();
}

/* Python's state of this thread; NULL when it has none, as those of C++ programs. */
static inline const void *tmk_pyframe_thread(void)
{
    void *value;
    if (__builtin_expect(tmk_thread_slot_read(&tmk_pyframe_hot.slot, &value), 1))
        return value;
    return tmk_pyframe_hot.this_thread();
}

/* Whether stacks are read, and it makes a difference whether Python tells when code objects go. */
bool tmk_pyframe_can_be_watched(void);
/* It does from now on, or not any more. */
void tmk_pyframe_set_watched(bool is_watched);
/* No hash of before means a stack any more. */
void tmk_pyframe_forget(void);

/* Where the interpreter's code lies: native frames from there on are Python's own. */
const struct tmk_code_range *tmk_pyframe_range(void);

/* The stack of this thread itself. */
void tmk_pyframe_walk(struct tmk_pystack *ret);

/* The code object of a frame just walked. */
void tmk_pyframe_code(const void *code, struct tmk_pycode *ret);

/* A Python string as UTF-8, cut at `size` bytes; returns the length. No zero byte is added. */
size_t tmk_pytext_utf8(const struct tmk_pytext *t, char *buffer, size_t size);

#endif
