/* SPDX-License-Identifier: MIT */
/* interop/torch/names.h - strings, frames and stacks that will become definitions of a trace: each
 * once, numbered from 1 as the trace numbers them. 0 is none. */
#ifndef TMK_INTEROP_TORCH_NAMES_H
#define TMK_INTEROP_TORCH_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "kit/arena.h"

struct tmk_name { /* a string */
    const char *text;
    uint32_t bytes;
};

struct tmk_name_frame {
    uint32_t file, function; /* strings */
    uint32_t line;
};

struct tmk_name_stack {
    uint64_t first; /* in `stack_frames` */
    uint32_t n;
};

struct tmk_names {
    struct tmk_name *strings; /* number - 1 */
    uint64_t n_strings, string_room;
    struct tmk_name_frame *frames;
    uint64_t n_frames, frame_room;
    struct tmk_name_stack *stacks;
    uint64_t n_stacks, stack_room;
    uint32_t *stack_frames; /* innermost first */
    uint64_t n_stack_frames, stack_frame_room;
    struct tmk_index string_index, frame_index, stack_index;
    struct tmk_arena arena;
    bool failed; /* no memory: what was asked for since is 0 */
};

/* Texts longer than a trace takes are cut. Zero is an empty set of names. */
uint32_t tmk_names_string(struct tmk_names *n, const char *text, size_t bytes);
uint32_t tmk_names_frame(struct tmk_names *n, uint32_t file, uint32_t function, uint32_t line);
/* Of more than TMK_NAMES_MAX_FRAMES the innermost count. None: 0. */
enum { TMK_NAMES_MAX_FRAMES = 1000 };
uint32_t tmk_names_stack(struct tmk_names *n, const uint32_t *frames, uint32_t n_frames);
void tmk_names_fini(struct tmk_names *n);

#endif
