/* SPDX-License-Identifier: MIT */
/* passes/group.h - sums of blocks by what they have in common: category, module, component,
 * stage, step, stack, name.
 *
 * Blocks name their context by a number of the replay's state. Labels keep the contexts, so that a
 * result can be asked after the replay is gone. Live blocks are to be settled (trace/state.h). */
#ifndef TMK_PASSES_GROUP_H
#define TMK_PASSES_GROUP_H

#include "model/run.h"

enum tmk_by {
    TMK_BY_CATEGORY,
    TMK_BY_MODULE,
    TMK_BY_COMPONENT,
    TMK_BY_STAGE,
    TMK_BY_STEP,
    TMK_BY_STACK,
    TMK_BY_TENSOR,
    TMK_BY_SITE, /* the innermost line of the stack alone */
};

/* Find a key by its name, as in --by. Returns false when there is none of that name. */
bool tmk_by_find(const char *name, enum tmk_by *ret);

struct tmk_peak_row {
    const char *key; /* NULL: not known; by step: before the first. By stack and by site: "file:line
                        function", innermost */
    uint32_t stack;  /* by stack and by site: the first one met, for its frames */
    uint64_t bytes;
    uint64_t n_blocks;
};

struct tmk_labels {
    const struct tmk_process *p;
    struct tmk_context *contexts;
    uint32_t n_contexts;
};

/* Returns 0 or TMK_ENOMEM. Names are borrowed from the process's reader. fini takes a zeroed one.
 */
int tmk_labels_init(struct tmk_labels *l, const struct tmk_process *p, const struct tmk_state *s);
void tmk_labels_fini(struct tmk_labels *l);

struct tmk_group;

/* 0 or TMK_ENOMEM; the labels must outlive the group. */
int tmk_group_open(const struct tmk_labels *l, enum tmk_by by, struct tmk_group **ret_group);
struct tmk_group *tmk_group_close(struct tmk_group *g);
/* Add a block. If memory runs out, tmk_group_rows() says so. */
void tmk_group_add(struct tmk_group *g, const struct tmk_block *b);
/* The key of the row that the block belongs to, which is made when new; good until close. */
const char *tmk_group_key(struct tmk_group *g, const struct tmk_block *b);
/* The number of that row, in the order in which rows were made; valid until rows are asked for.
 * UINT32_MAX without memory. */
uint32_t tmk_group_number(struct tmk_group *g, const struct tmk_block *b);
/* Give the rows, largest first, borrowed until close. Returns 0 or TMK_ENOMEM. */
int tmk_group_rows(struct tmk_group *g, const struct tmk_peak_row **ret_rows, uint64_t *ret_n);

#endif
