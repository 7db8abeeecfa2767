/* SPDX-License-Identifier: MIT */
/* record/python/pylayout.h - where CPython keeps its frames, and the proof of it.
 *
 * What is read are private structs: tables of offsets for 3.9 to 3.12, and from 3.13 on the offsets
 * that the interpreter publishes for debuggers. Neither is trusted: before the first use a layout
 * is proven on the calling thread's own stack. Every object met there must have the type that is
 * expected, each read going through the kernel, so that a wrong address is an error and not a
 * crash. Free-threaded builds are refused: their frames change under a reader. */
#ifndef TMK_RECORD_PYLAYOUT_H
#define TMK_RECORD_PYLAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "record/loader/library.h"

/* Offsets in bytes. Frames of 3.9 and 3.10 are objects, later ones are not. */
struct tmk_pylayout {
    uint16_t minor;
    uint16_t lines; /* enum tmk_py_lines */
    uint8_t
        count_scale; /* 0: a frame has its instruction's address; else a count of so many bytes */
    bool indirect;   /* thread → cframe → frame */
    bool tagged;     /* low bits of the executable's pointer are not address */
    bool has_owner;  /* frames that are no Python function must be passed over */
    uint16_t thread_interpreter, thread_frame, cframe_frame;
    uint16_t frame_back, frame_code, frame_instruction, frame_owner;
    uint16_t code_start, code_file, code_name, code_first_line, code_lines;
    uint16_t code_version; /* a number that no other code object has had; 0: there is none */
    uint16_t text_length, text_hash, text_state, text_ascii, text_compact;
    uint16_t bytes_size, bytes_start, object_type;
};

/* Frames with this owner or a larger one are entries from C, no Python function. */
enum { TMK_PYFRAME_OWNED_BY_C = 3 };

/* An interpreter found in this process. */
struct tmk_pyruntime {
    struct tmk_pylayout layout;
    void *(*this_thread)(void); /* PyGILState_GetThisThreadState: NULL without one; needs no GIL */
    const void *main_interpreter;
    const void *code_type, *text_type, *bytes_type;
    struct tmk_code_range image; /* the interpreter's own code */
};

enum tmk_pylook {
    TMK_PYLOOK_NONE,    /* no interpreter here */
    TMK_PYLOOK_LATER,   /* one, but this thread has no frames to prove a layout on */
    TMK_PYLOOK_PROVEN,  /* *ret is good */
    TMK_PYLOOK_REFUSED, /* one that cannot be read; *ret_reason says why */
};

/* Slow: looks up symbols. Any thread. */
enum tmk_pylook tmk_pylayout_find(struct tmk_pyruntime *ret, const char **ret_reason);

/* Where a string's kind stands in its state bits; compact and ascii follow it. */
static inline unsigned tmk_pylayout_kind_bit(const struct tmk_pylayout *l)
{
    return l->minor >= 14 ? 16 : 2;
}

#endif
