/* SPDX-License-Identifier: MIT */
/* trace/defs.h - the definitions of a trace by id: strings, frames, stacks, threads, streams, torch
 * modules and parameters.
 *
 * Read every definitions chunk, in any order, then settle(): it puts line tables together and finds
 * the line of each Python frame, walking each table once. So each question is one look-up, and a
 * hostile file costs no more than its size. Texts end in a zero byte and may contain others;
 * everything returned is borrowed until fini. */
#ifndef TMK_TRACE_DEFS_H
#define TMK_TRACE_DEFS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/region.h"

/* A line of code, or a place in a library. NULL and 0 mean unknown. */
struct tmk_frame {
    const char *file; /* a native frame has the module's path here; "" where there is no file */
    const char *function;
    uint32_t line;
    uint32_t first_line; /* of the function; Python's only */
    uint64_t address;    /* native: in the module's file */
};

struct tmk_native {
    const char *path;
    const uint8_t *build_id;
    uint32_t build_id_bytes; /* 0: it has none */
    uint64_t address;        /* a return address, as the file has it */
};

struct tmk_stack {
    const uint32_t *frames; /* ids, innermost first */
    uint32_t n_frames;
};

struct tmk_thread_info {
    uint64_t system_id;
    const char *name;
};

struct tmk_stream {
    uint64_t handle;
    uint16_t device;
};

struct tmk_parameter { /* of a torch model, or one of its buffers */
    const char *name;
    const char *shape; /* dtype and shape, as in "float32 [256, 1024]" */
    uint64_t address;  /* of its storage */
    uint64_t size_bytes;
    uint32_t flags; /* enum tmk_parameter_flag */
    uint16_t device;
};

struct tmk_defs_table { /* by id; a region, so that ids need not be dense */
    struct tmk_region memory;
    uint32_t n; /* ids in use are below */
};

struct tmk_defs {
    struct tmk_defs_table strings, frames, stacks, threads, codes, modules, streams, classes,
        parameters;
    int64_t tail_step; /* this step was none: the program ended before it made an update.
                          TMK_NO_STEP: there is none such */
    struct tmk_defs_block *arena;
};

/* Returns 0 or TMK_ENOMEM. fini takes a zeroed or half-made one. */
int tmk_defs_init(struct tmk_defs *d);
void tmk_defs_fini(struct tmk_defs *d);

/* Take the definitions of a chunk. Returns 0, TMK_ENOMEM, or TMK_EDAMAGED: then the definitions
 * before the damage were taken. */
int tmk_defs_read(struct tmk_defs *d, struct tmk_view payload);
/* Find the lines of Python frames, after the last chunk was read. Returns 0 or TMK_ENOMEM. The
 * caller may read more chunks and call it again. */
int tmk_defs_settle(struct tmk_defs *d);

/* These return NULL or false for an id that is not defined. */
const char *tmk_defs_string(const struct tmk_defs *d, uint32_t id);
bool tmk_defs_frame(const struct tmk_defs *d, uint32_t id, struct tmk_frame *ret);
bool tmk_defs_native(const struct tmk_defs *d, uint32_t frame, struct tmk_native *ret);
bool tmk_defs_stack(const struct tmk_defs *d, uint32_t id, struct tmk_stack *ret);
bool tmk_defs_thread(const struct tmk_defs *d, uint32_t id, struct tmk_thread_info *ret);
bool tmk_defs_stream(const struct tmk_defs *d, uint32_t id, struct tmk_stream *ret);
bool tmk_defs_parameter(const struct tmk_defs *d, uint32_t id, struct tmk_parameter *ret);
/* The class of the torch module with that string as its name. */
const char *tmk_defs_class(const struct tmk_defs *d, uint32_t name);

#endif
