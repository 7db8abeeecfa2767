/* SPDX-License-Identifier: MIT */
/* passes/diff/diff.h - two moments compared: what each had alive, by a key, and why that has
 * changed.
 *
 * Blocks of both sides are the same thing when they have the same category and name (parameters,
 * buffers, gradients, optimizer state), or the same category, module and stack (all else). Numbers
 * in names do not count ("layers.*.mlp"): layers of the same kind are the same thing. See align.h
 * for when names and stacks are the same. Of each such thing blocks of equal size cancel out; of
 * what is left the largest of one side is set against the largest of the other and so on. That
 * splits the change of bytes, exactly:
 *
 *     resized    blocks that both have, of another size
 *     recounted  blocks that one side has more of, at things that both have
 *     added      things that only B has
 *     gone       things that only A has (counted negative)
 *
 * Things are then put together by category and module: a cause. Causes add up to the change of what
 * was alive. */
#ifndef TMK_PASSES_DIFF_DIFF_H
#define TMK_PASSES_DIFF_DIFF_H

#include "passes/diff/align.h"
#include "passes/group.h"

struct tmk_diff_row {
    const char *key;   /* NULL: not known */
    uint32_t stack[2]; /* by stack: one of each side's, 0 where it has none */
    uint64_t bytes[2];
    uint64_t n_blocks[2];
};

struct tmk_diff_split {
    int64_t resized, recounted, added, gone; /* they add up to the change */
};

struct tmk_diff_cause {
    uint8_t category;
    const char *owner; /* module, "layers.*.mlp" for several; NULL: none */
    /* The stack of its largest part, and the side that it is of; 0: not known. */
    uint32_t stack;
    enum tmk_side stack_side;
    uint64_t bytes[2];
    uint64_t n_blocks[2];
    uint64_t n_parameters[2]; /* of optimizer state: parameters that it is kept for */
    struct tmk_diff_split split;
    /* Of blocks that were resized: how many, and by which factors. */
    uint64_t n_resized;
    double least_factor, most_factor;
    bool is_attributed; /* its module, its name or the line that made it is known */
};

struct tmk_diff;

/* Compare what two peaks, each found or not, had alive. 0 or TMK_ENOMEM. They must outlive it. */
int tmk_diff_open(struct tmk_peak *const peaks[2], enum tmk_by by, struct tmk_diff **ret_diff,
                  struct tmk_error *err);
struct tmk_diff *tmk_diff_close(struct tmk_diff *d);

/* Largest change first; borrowed until close. */
uint64_t tmk_diff_n_rows(const struct tmk_diff *d);
const struct tmk_diff_row *tmk_diff_row(const struct tmk_diff *d, uint64_t i);
uint64_t tmk_diff_n_causes(const struct tmk_diff *d);
const struct tmk_diff_cause *tmk_diff_cause(const struct tmk_diff *d, uint64_t i);

/* Bytes of all blocks of a side, and how their change splits. */
uint64_t tmk_diff_bytes(const struct tmk_diff *d, enum tmk_side side);
struct tmk_diff_split tmk_diff_split(const struct tmk_diff *d);
/* Part of the change, up and down counted alike, whose causes are attributed: 0 to 1; 1 where
 * nothing has changed. `others`: bytes of change that blocks do not explain (0: none). */
double tmk_diff_attributed(const struct tmk_diff *d, uint64_t others);
/* Names were compared without what wrappers add (align.h). */
bool tmk_diff_unwraps(const struct tmk_diff *d);

/* b - a, held within what fits. */
int64_t tmk_diff_change(uint64_t a, uint64_t b);

#endif
