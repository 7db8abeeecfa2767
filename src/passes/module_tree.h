/* SPDX-License-Identifier: MIT */
/* passes/module_tree.h - bytes by module as a tree: each module has what is its own and the sum of
 * all modules in it.
 *
 * Modules that repeat are folded: four or more siblings with numbers for names become one node "*"
 * when the trees below them have the same shape and none has more than twice the bytes of the
 * first. Siblings without modules in them, as in a small nn.Sequential, keep their names up to
 * twelve of them. A node then stands for `n` modules, with their sum, and the least and the most
 * that one of them has. Where only some of the siblings are alike, the name has their numbers:
 * "0-30". A module that has nothing but one module in it is joined with it: "model.layers.*".
 *
 * The sum of all nodes' own bytes is the sum of the rows, folded or not. */
#ifndef TMK_PASSES_MODULE_TREE_H
#define TMK_PASSES_MODULE_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "passes/group.h"

struct tmk_module_node {
    const char *name;         /* below its parent; NULL: not in a module, or not known */
    uint32_t rank;            /* among all nodes, most bytes first; before what is in it */
    bool is_own;              /* no module: what its parent has itself, beside the modules in it */
    uint32_t n;               /* how many modules it stands for */
    uint64_t bytes, n_blocks; /* with all that is in it */
    uint64_t least_bytes, most_bytes;  /* that one of the n has */
    struct tmk_module_node **children; /* most bytes first */
    uint32_t n_children;
    struct tmk_module_node *parent; /* NULL: the root, which has no name */
    uint64_t own_bytes, own_blocks, least_own, most_own;
};

struct tmk_module_tree;

/* Make the tree of rows by module. Returns 0 or TMK_ENOMEM. Names are borrowed from the rows. */
int tmk_module_tree_open(const struct tmk_peak_row *rows, uint64_t n, bool fold,
                         struct tmk_module_tree **ret_tree);
struct tmk_module_tree *tmk_module_tree_close(struct tmk_module_tree *t);
const struct tmk_module_node *tmk_module_tree_root(const struct tmk_module_tree *t);

#endif
