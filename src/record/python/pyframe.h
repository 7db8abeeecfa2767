/* SPDX-License-Identifier: MIT */
/* record/python/pyframe.h - the Python stack of the calling thread, read without the GIL.
 *
 * A thread that is inside a C call made from Python does not change its own frames, so it can read
 * them at any time, whoever holds the GIL. A frame is told by its code object and the offset of its
 * instruction; names and line table of a code object are written to the trace once, and lines are
 * found by the reader. */
#ifndef TMK_RECORD_PYFRAME_H
#define TMK_RECORD_PYFRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/loader/library.h"
#include "record/python/pyframe_hot.h"

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
