/* SPDX-License-Identifier: MIT */
/* model/free_set_valid.c - the invariants of free_set.h. */
#include "model/free_set.h"

#include <stddef.h>

#include "base/valid.h"

static bool is_before(const struct tmk_free_key *a, const struct tmk_free_key *b)
{
    return a->size_bytes != b->size_bytes ? a->size_bytes < b->size_bytes : a->place < b->place;
}

static bool leaf_is_valid(const struct tmk_free_set *s, uint32_t i)
{
    const struct tmk_free_leaf *leaf = s->leaves[i];
    TMK_HOLDS(leaf->n > 0 && leaf->n <= TMK_FREE_SET_LEAF);
    TMK_HOLDS(s->firsts[i].size_bytes == leaf->keys[0].size_bytes &&
              s->firsts[i].place == leaf->keys[0].place);
    for (uint32_t k = 1; k < leaf->n; k++)
        TMK_HOLDS(is_before(&leaf->keys[k - 1], &leaf->keys[k]));
    const struct tmk_free_leaf *left = i > 0 ? s->leaves[i - 1] : NULL;
    TMK_HOLDS(!left || is_before(&left->keys[left->n - 1], &leaf->keys[0]));
    return true;
}

bool tmk_free_set_is_valid(const struct tmk_free_set *s)
{
    uint64_t n = 0;
    TMK_HOLDS(s->n_leaves <= s->n_made && s->n_made <= s->room);
    for (uint32_t i = 0; i < s->n_leaves; i++) {
        if (!leaf_is_valid(s, i))
            return false;
        n += s->leaves[i]->n;
    }
    TMK_HOLDS(n == s->n);
    return true;
}
