/* SPDX-License-Identifier: MIT */
/* passes/diff/diff_pieces.h - the blocks of two peaks, described by numbers that both share, so
 * that sorting brings those of the same thing together. For passes/diff/diff.c alone; diff.h
 * says what a thing is. */
#ifndef TMK_PASSES_DIFF_DIFF_PIECES_H
#define TMK_PASSES_DIFF_DIFF_PIECES_H

#include "kit/arena.h"
#include "kit/textmap.h"
#include "passes/diff/align.h"

struct tmk_piece {
    uint8_t category;
    uint8_t side;
    uint32_t identity;  /* number of the text of its name or module */
    uint32_t stack;     /* aligned; 0 for what goes by its name */
    uint32_t owner;     /* number of its module's text */
    uint32_t parameter; /* optimizer state: number + 1 of the name of its parameter */
    uint32_t own_stack; /* as in the trace */
    uint64_t size_bytes;
};

/* Turn "layers.0.mlp" into "layers.*.mlp"; NULL without memory. A number in front stays: the
 * parts of a plain nn.Sequential are of different kinds. */
const char *tmk_name_pattern(struct tmk_arena *memory, const char *name);

struct tmk_pieces { /* zero: none */
    struct tmk_piece *items;
    uint64_t n, room;
    struct tmk_textmap texts; /* patterns and owners by number */
    struct tmk_arena memory;
    uint64_t bytes[2]; /* by side */
};

/* Add the blocks of a side. Returns 0 or TMK_ENOMEM. */
int tmk_pieces_add(struct tmk_pieces *l, struct tmk_align *align, enum tmk_side side,
                   const struct tmk_peak *k);
/* Sort by thing, then side, then size with the largest first. */
void tmk_pieces_sort(struct tmk_pieces *l);
bool tmk_pieces_are_one(const struct tmk_piece *a, const struct tmk_piece *b);
void tmk_pieces_fini(struct tmk_pieces *l);

#endif
