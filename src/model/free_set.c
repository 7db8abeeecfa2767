/* SPDX-License-Identifier: MIT */
/* model/free_set.c - see free_set.h.
 *
 * A full leaf is halved. An empty leaf becomes a spare one, and a leaf that fits into its left
 * neighbour with room to spare is merged into it, so leaves stay about half full. */
#include "model/free_set.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/valid.h"

#define ASSERT_VALID(s) TMK_ASSERT_VALID(tmk_free_set_is_valid(s), (s)->n)

enum { UNIT_SHIFT = 9 };

static struct tmk_free_key make_free_key(uint64_t size_bytes, uint64_t address, uint32_t block)
{
    uint64_t place = (address >> UNIT_SHIFT) << TMK_FREE_SET_INDEX_BITS;
    return (struct tmk_free_key){size_bytes, place | block};
}

static inline bool is_key_less(const struct tmk_free_key *a, const struct tmk_free_key *b)
{
    return (a->size_bytes < b->size_bytes) |
           ((a->size_bytes == b->size_bytes) & (a->place < b->place));
}

/* How many of `n` sorted keys are less than `key`. The search has no branches, because a processor
 * cannot predict them here. */
static inline uint32_t count_less(const struct tmk_free_key *keys, uint32_t n,
                                  const struct tmk_free_key *key)
{
    const struct tmk_free_key *base = keys;
    if (n == 0)
        return 0;
    while (n > 1) {
        uint32_t half = n / 2;
        base += is_key_less(&base[half - 1], key) ? half : 0;
        n -= half;
    }
    return (uint32_t)(base - keys) + is_key_less(base, key);
}

void tmk_free_set_fini(struct tmk_free_set *s)
{
    for (uint32_t i = 0; i < s->n_made; i++)
        free(s->leaves[i]);
    free(s->leaves);
    free(s->firsts);
    *s = (struct tmk_free_set){0};
}

/* ---- leaves ---- */

static int make_leaf_room(struct tmk_free_set *s)
{
    if (s->n_made < s->room)
        return 0;
    uint32_t room = s->room ? 2 * s->room : 8;
    struct tmk_free_leaf **leaves = realloc(s->leaves, room * sizeof(struct tmk_free_leaf *));
    if (!leaves)
        return TMK_ENOMEM;
    s->leaves = leaves;
    struct tmk_free_key *firsts = realloc(s->firsts, room * sizeof *firsts);
    if (!firsts)
        return TMK_ENOMEM;
    s->firsts = firsts;
    s->room = room;
    return 0;
}

/* Insert a new empty leaf at index `i`. */
static int insert_leaf(struct tmk_free_set *s, uint32_t i)
{
    if (s->n_leaves == s->n_made) {
        int rc = make_leaf_room(s);
        struct tmk_free_leaf *made = rc < 0 ? NULL : malloc(sizeof *made);
        if (!made)
            return TMK_ENOMEM;
        s->leaves[s->n_made++] = made;
    }
    struct tmk_free_leaf *leaf = s->leaves[s->n_leaves];
    memmove(&s->leaves[i + 1], &s->leaves[i], (s->n_leaves - i) * sizeof(struct tmk_free_leaf *));
    memmove(&s->firsts[i + 1], &s->firsts[i], (s->n_leaves - i) * sizeof s->firsts[0]);
    s->leaves[i] = leaf;
    leaf->n = 0;
    s->n_leaves++;
    return 0;
}

static void remove_leaf(struct tmk_free_set *s, uint32_t i)
{
    struct tmk_free_leaf *leaf = s->leaves[i];
    uint32_t behind = s->n_leaves - i - 1;
    memmove(&s->leaves[i], &s->leaves[i + 1], behind * sizeof(struct tmk_free_leaf *));
    memmove(&s->firsts[i], &s->firsts[i + 1], behind * sizeof s->firsts[0]);
    s->leaves[--s->n_leaves] = leaf; /* a spare one */
}

static int halve_leaf(struct tmk_free_set *s, uint32_t i)
{
    int rc = insert_leaf(s, i + 1);
    if (rc < 0)
        return rc;
    struct tmk_free_leaf *left = s->leaves[i], *right = s->leaves[i + 1];
    uint32_t keep = left->n / 2;
    right->n = left->n - keep;
    memcpy(right->keys, &left->keys[keep], right->n * sizeof right->keys[0]);
    left->n = keep;
    s->firsts[i + 1] = right->keys[0];
    return 0;
}

static void merge_next_leaf(struct tmk_free_set *s, uint32_t i)
{
    struct tmk_free_leaf *left = s->leaves[i], *right = s->leaves[i + 1];
    memcpy(&left->keys[left->n], right->keys, right->n * sizeof right->keys[0]);
    left->n += right->n;
    remove_leaf(s, i + 1);
}

/* ---- keys ---- */

/* The leaf that a key is in or belongs in. */
static inline uint32_t leaf_of(const struct tmk_free_set *s, const struct tmk_free_key *key)
{
    uint32_t n = count_less(s->firsts, s->n_leaves, key);
    bool begins = n < s->n_leaves && !is_key_less(key, &s->firsts[n]);
    return begins || n == 0 ? n : n - 1;
}

int tmk_free_set_add(struct tmk_free_set *s, uint64_t size_bytes, uint64_t address, uint32_t block)
{
    assert(address < TMK_FREE_SET_ADDRESS_END && address % (1u << UNIT_SHIFT) == 0);
    assert(block >> TMK_FREE_SET_INDEX_BITS == 0);
    struct tmk_free_key key = make_free_key(size_bytes, address, block);
    int rc = 0;
    if (s->n_leaves == 0) {
        rc = insert_leaf(s, 0);
        if (rc == 0)
            s->firsts[0] = key;
    }
    uint32_t i = rc < 0 ? 0 : leaf_of(s, &key);
    if (rc == 0 && s->leaves[i]->n == TMK_FREE_SET_LEAF) {
        rc = halve_leaf(s, i);
        if (rc == 0 && !is_key_less(&key, &s->firsts[i + 1]))
            i++;
    }
    if (rc < 0)
        return rc;
    struct tmk_free_leaf *leaf = s->leaves[i];
    uint32_t at = count_less(leaf->keys, leaf->n, &key);
    memmove(&leaf->keys[at + 1], &leaf->keys[at], (leaf->n - at) * sizeof key);
    leaf->keys[at] = key;
    leaf->n++;
    s->firsts[i] = leaf->keys[0];
    s->n++;
    ASSERT_VALID(s);
    return 0;
}

void tmk_free_set_remove_at(struct tmk_free_set *s, struct tmk_free_cursor c)
{
    struct tmk_free_leaf *leaf = s->leaves[c.leaf];
    leaf->n--;
    s->n--;
    memmove(&leaf->keys[c.at], &leaf->keys[c.at + 1], (leaf->n - c.at) * sizeof leaf->keys[0]);
    if (leaf->n == 0) {
        remove_leaf(s, c.leaf);
        return;
    }
    s->firsts[c.leaf] = leaf->keys[0];
    if (c.leaf > 0 && leaf->n + s->leaves[c.leaf - 1]->n < TMK_FREE_SET_LEAF / 2)
        merge_next_leaf(s, c.leaf - 1);
    ASSERT_VALID(s);
}

void tmk_free_set_remove(struct tmk_free_set *s, uint64_t size_bytes, uint64_t address,
                         uint32_t block)
{
    struct tmk_free_key key = make_free_key(size_bytes, address, block);
    uint32_t i = leaf_of(s, &key);
    const struct tmk_free_leaf *leaf = s->leaves[i];
    uint32_t at = count_less(leaf->keys, leaf->n, &key);
    assert(at < leaf->n && !is_key_less(&key, &leaf->keys[at]));
    tmk_free_set_remove_at(s, (struct tmk_free_cursor){i, at});
}

struct tmk_free_cursor tmk_free_set_find(const struct tmk_free_set *s, uint64_t size_bytes,
                                         uint64_t address)
{
    struct tmk_free_key key = make_free_key(size_bytes, address, 0);
    if (s->n_leaves == 0)
        return (struct tmk_free_cursor){0, 0};
    uint32_t i = leaf_of(s, &key);
    const struct tmk_free_leaf *leaf = s->leaves[i];
    uint32_t at = count_less(leaf->keys, leaf->n, &key);
    return at < leaf->n ? (struct tmk_free_cursor){i, at} : (struct tmk_free_cursor){i + 1, 0};
}

void tmk_free_set_next(const struct tmk_free_set *s, struct tmk_free_cursor *c)
{
    if (++c->at >= s->leaves[c->leaf]->n)
        *c = (struct tmk_free_cursor){c->leaf + 1, 0};
}

bool tmk_free_set_back(const struct tmk_free_set *s, struct tmk_free_cursor *c)
{
    if (c->at > 0) {
        c->at--;
        return true;
    }
    if (c->leaf == 0)
        return false;
    c->leaf--;
    c->at = s->leaves[c->leaf]->n - 1;
    return true;
}
