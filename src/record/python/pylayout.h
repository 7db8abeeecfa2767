/* SPDX-License-Identifier: MIT */
/* record/python/pylayout.h - where CPython keeps its frames: layouts of 3.9 to 3.12, and what 3.13
 * publishes.
 *
 * They were measured with each version's own headers, and are the same on every 64-bit machine.
 * They are in a header so that the walk over frames is compiled for each of them, with the offsets
 * as constants: a third of the instructions. No layout is trusted before pyruntime.h has proven it.
 */
#ifndef TMK_RECORD_PYLAYOUT_H
#define TMK_RECORD_PYLAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/layout.h"

/* Offsets in bytes. Frames of 3.9 and 3.10 are objects, later ones are not. */
struct tmk_pylayout {
    uint16_t minor;
    uint16_t lines; /* enum tmk_py_lines */
    /* 0: a frame has its instruction's address; else an index of units of this many bytes */
    uint8_t count_scale;
    bool indirect;  /* thread → cframe → frame */
    bool tagged;    /* low bits of the executable's pointer are no address */
    bool has_owner; /* frames that are no Python function must be skipped */
    uint16_t thread_interpreter, thread_frame, cframe_frame;
    uint16_t frame_back, frame_code, frame_instruction, frame_owner;
    uint16_t code_start, code_file, code_name, code_first_line, code_lines;
    uint16_t code_version; /* a number that no other code object has had; 0: there is none */
    uint16_t text_length, text_hash, text_state, text_ascii, text_compact;
    uint16_t bytes_size, bytes_start, object_type;
};

/* Frames with this owner or a larger one are entries from C, not Python functions. */
enum { TMK_PYFRAME_OWNED_BY_C = 3 };

/* Position of a string's kind in its state bits; compact and ascii follow it. */
static inline unsigned tmk_pylayout_kind_bit(const struct tmk_pylayout *l)
{
    return l->minor >= 14 ? 16 : 2;
}

enum { TMK_PYLAYOUT_3_9, TMK_PYLAYOUT_3_10, TMK_PYLAYOUT_3_11, TMK_PYLAYOUT_3_12 };

static const struct tmk_pylayout tmk_pylayout_known[] = {
    [TMK_PYLAYOUT_3_9] = {.minor = 9,
                          .lines = TMK_PY_LINES_39,
                          .count_scale = 1,
                          .thread_interpreter = 16,
                          .thread_frame = 24,
                          .frame_back = 24,
                          .frame_code = 32,
                          .frame_instruction = 104,
                          .code_file = 104,
                          .code_name = 112,
                          .code_first_line = 40,
                          .code_lines = 120,
                          .text_length = 16,
                          .text_hash = 24,
                          .text_state = 32,
                          .text_ascii = 48,
                          .text_compact = 72,
                          .bytes_size = 16,
                          .bytes_start = 32,
                          .object_type = 8},
    [TMK_PYLAYOUT_3_10] = {.minor = 10,
                           .lines = TMK_PY_LINES_310,
                           .count_scale = 2,
                           .thread_interpreter = 16,
                           .thread_frame = 24,
                           .frame_back = 24,
                           .frame_code = 32,
                           .frame_instruction = 96,
                           .code_file = 104,
                           .code_name = 112,
                           .code_first_line = 40,
                           .code_lines = 120,
                           .text_length = 16,
                           .text_hash = 24,
                           .text_state = 32,
                           .text_ascii = 48,
                           .text_compact = 72,
                           .bytes_size = 16,
                           .bytes_start = 32,
                           .object_type = 8},
    [TMK_PYLAYOUT_3_11] = {.minor = 11,
                           .lines = TMK_PY_LINES_311,
                           .indirect = true,
                           .thread_interpreter = 16,
                           .thread_frame = 56,
                           .cframe_frame = 8,
                           .frame_back = 48,
                           .frame_code = 32,
                           .frame_instruction = 56,
                           .code_start = 184,
                           .code_file = 112,
                           .code_name = 128,
                           .code_first_line = 72,
                           .code_lines = 136,
                           .text_length = 16,
                           .text_hash = 24,
                           .text_state = 32,
                           .text_ascii = 48,
                           .text_compact = 72,
                           .bytes_size = 16,
                           .bytes_start = 32,
                           .object_type = 8},
    [TMK_PYLAYOUT_3_12] = {.minor = 12,
                           .lines = TMK_PY_LINES_311,
                           .indirect = true,
                           .has_owner = true,
                           .thread_interpreter = 16,
                           .thread_frame = 56,
                           .cframe_frame = 0,
                           .frame_back = 8,
                           .frame_code = 0,
                           .frame_instruction = 56,
                           .frame_owner = 70,
                           .code_start = 192,
                           .code_file = 112,
                           .code_name = 128,
                           .code_first_line = 68,
                           .code_lines = 136,
                           .code_version = 92,
                           .text_length = 16,
                           .text_hash = 24,
                           .text_state = 32,
                           .text_ascii = 40,
                           .text_compact = 56,
                           .bytes_size = 16,
                           .bytes_start = 32,
                           .object_type = 8},
};

/* The layout that 3.13 publishes. The walk is compiled for it too, and used if the interpreter's
 * own figures are these. */
static const struct tmk_pylayout tmk_pylayout_usual_3_13 = {
    .minor = 13,
    .lines = TMK_PY_LINES_311,
    .has_owner = true,
    .thread_interpreter = 16,
    .thread_frame = 72,
    .frame_back = 8,
    .frame_code = 0,
    .frame_instruction = 56,
    .frame_owner = 70,
    .code_start = 200,
    .code_file = 112,
    .code_name = 128,
    .code_first_line = 68,
    .code_lines = 136,
    .code_version = 92,
    .text_length = 16,
    .text_hash = 24,
    .text_state = 32,
    .text_ascii = 40,
    .text_compact = 56,
    .bytes_size = 16,
    .bytes_start = 32,
    .object_type = 8,
};

#endif
