/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_segments.h - the segments that contain one device's blocks, as a torch
 * snapshot needs them: at every moment each block is in one, and none overlap.
 *
 * memory_viz goes backwards from the final segments and stops with an error at a block that lies
 * in none. Traces know segments only where the driver's calls were seen: not on the CPU, and not
 * those from before an attach. So where a block lies in none, one is made up around it, of whole
 * 2 MiB, and treated as memory that is mapped (segment_map); it goes when a real one takes its
 * place. */
#ifndef TMK_INTEROP_TORCH_TORCH_SEGMENTS_H
#define TMK_INTEROP_TORCH_TORCH_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

enum tmk_torch_kind {
    TMK_TORCH_ALLOCATED, /* cudaMalloc */
    TMK_TORCH_MAPPED,    /* a part of an expandable segment */
    TMK_TORCH_MADE_UP,
};

struct tmk_torch_segment {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t stream; /* handle of the stream of its first block */
    uint64_t n_blocks;
    uint32_t stack; /* 0: none */
    uint8_t kind;   /* enum tmk_torch_kind */
    bool has_stream;
};

struct tmk_torch_segments {
    struct tmk_torch_segment *items; /* by address */
    uint64_t n, room;
    uint64_t n_made_up;
    bool failed; /* no memory: the rest must not be used */
    /* Called for each segment, or part of one, that begins or ends. */
    void (*tell)(void *arg, const struct tmk_torch_segment *s, bool begins);
    void *arg;
};

/* Zero is an empty set, apart from `tell`. */
void tmk_torch_segments_fini(struct tmk_torch_segments *t);

/* The driver's segments. end returns whether there was one with blocks in it: these are then in
 * none, until they are held again. */
void tmk_torch_segments_begin(struct tmk_torch_segments *t, const struct tmk_torch_segment *s);
bool tmk_torch_segments_end(struct tmk_torch_segments *t, uint64_t address);

/* A block begins or ends. */
void tmk_torch_segments_hold(struct tmk_torch_segments *t, uint64_t address, uint64_t size_bytes,
                             uint64_t stream);
void tmk_torch_segments_release(struct tmk_torch_segments *t, uint64_t address);

/* The segment that the address lies in; NULL: none. Good until the next change. */
struct tmk_torch_segment *tmk_torch_segments_find(const struct tmk_torch_segments *t,
                                                  uint64_t address);

#endif
