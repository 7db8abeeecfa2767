/* SPDX-License-Identifier: MIT */
/* passes/diff/diff.h - a comparison of two moments: what each had alive, by a key, and why that
 * changed.
 *
 * Blocks of both sides are the same thing when they have the same category and name (parameters,
 * buffers, gradients, optimizer state), or the same category, module and stack (all else).
 * Numbers in names do not count ("layers.*.mlp"): layers of the same kind are the same thing.
 * align.h says when names and stacks are the same. Within a thing, blocks of equal size cancel
 * out; of the rest, the largest of one side is paired with the largest of the other, and so on.
 * That splits the change of bytes exactly:
 *
 *     resized    blocks that both have, of another size
 *     recounted  blocks that one side has more of, at things that both have
 *     added      things that only B has
 *     gone       things that only A has (counted negative)
 *
 * Things with the same category and module form a cause. Causes add up to the change of what was
 * alive. */
#ifndef TMK_PASSES_DIFF_DIFF_H
#define TMK_PASSES_DIFF_DIFF_H

#include "passes/diff/align.h"
#include "passes/group.h"

struct tmk_diff_row {
    const char *key;   /* NULL: not known */
    uint32_t stack[2]; /* by stack: one of each side, 0 where it has none */
    uint64_t bytes[2];
    uint64_t n_blocks[2];
};

struct tmk_diff_split {
    int64_t resized, recounted, added, gone; /* they add up to the change */
};

struct tmk_diff_cause {
    uint8_t category;
    const char *owner; /* module, "layers.*.mlp" for several; NULL: none */
    /* The stack of its largest part, and the side that has that stack; 0: not known. */
    uint32_t stack;
    enum tmk_side stack_side;
    uint64_t bytes[2];
    uint64_t n_blocks[2];
    uint64_t n_parameters[2]; /* of optimizer state: the number of parameters that it belongs to */
    struct tmk_diff_split split;
    /* Blocks that were resized: how many, and by which factors. */
    uint64_t n_resized;
    double least_factor, most_factor;
    bool is_attributed; /* its module, its name or its allocation site is known */
};

struct tmk_diff;

/* Compare what two peaks had alive, each found or not. They must outlive the result. Returns 0
 * or TMK_ENOMEM. */
int tmk_diff_open(struct tmk_peak *const peaks[2], enum tmk_by by, struct tmk_diff **ret_diff,
                  struct tmk_error *err);
struct tmk_diff *tmk_diff_close(struct tmk_diff *d);

/* Rows come with the largest change first; borrowed until close. */
uint64_t tmk_diff_n_rows(const struct tmk_diff *d);
const struct tmk_diff_row *tmk_diff_row(const struct tmk_diff *d, uint64_t i);
uint64_t tmk_diff_n_causes(const struct tmk_diff *d);
const struct tmk_diff_cause *tmk_diff_cause(const struct tmk_diff *d, uint64_t i);

/* The bytes of all blocks of a side, and how their change splits. */
uint64_t tmk_diff_bytes(const struct tmk_diff *d, enum tmk_side side);
struct tmk_diff_split tmk_diff_split(const struct tmk_diff *d);
/* The part of the change with attributed causes, 0 to 1, with growth and shrinkage counted alike;
 * 1 where nothing has changed. `others`: bytes of change that blocks do not explain (0: none). */
double tmk_diff_attributed(const struct tmk_diff *d, uint64_t others);
/* True when names were compared without the parts that wrappers add (align.h). */
bool tmk_diff_unwraps(const struct tmk_diff *d);

/* b - a, clamped to what the type can hold. */
int64_t tmk_diff_change(uint64_t a, uint64_t b);

#endif
