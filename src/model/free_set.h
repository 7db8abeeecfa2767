/* SPDX-License-Identifier: MIT */
/* model/free_set.h - a set of free blocks ordered by (size, address), for best fit: find the
 * smallest block that is large enough, add, remove, walk.
 *
 * The set is a list of leaves of up to 64 keys each, and an array of the first key of each leaf.
 * Two binary searches find a place, and at most half a kilobyte is moved. For the usual hundreds of
 * blocks that beats trees, because no pointers are chased. Memory is only allocated when there are
 * more leaves than ever before. Sizes and addresses are multiples of 512. */
#ifndef TMK_MODEL_FREE_SET_H
#define TMK_MODEL_FREE_SET_H

#include <stdbool.h>
#include <stdint.h>

enum { TMK_FREE_SET_LEAF = 64, TMK_FREE_SET_INDEX_BITS = 25 };

/* Addresses must stay below this. */
#define TMK_FREE_SET_ADDRESS_END (1ull << 48)

struct tmk_free_key {
    uint64_t size_bytes;
    uint64_t place; /* address / 512, then the block's number */
};

struct tmk_free_leaf {
    uint32_t n;
    struct tmk_free_key keys[TMK_FREE_SET_LEAF];
};

struct tmk_free_set {
    struct tmk_free_leaf **leaves; /* from n_leaves up to n_made: spare leaves */
    struct tmk_free_key *firsts;   /* of each leaf */
    uint32_t n_leaves, n_made, room;
    uint64_t n;
};

struct tmk_free_cursor {
    uint32_t leaf, at;
};

/* A zeroed set is an empty one. */
void tmk_free_set_fini(struct tmk_free_set *s);
/* Add a key, which must not be in the set. 0 or TMK_ENOMEM. */
int tmk_free_set_add(struct tmk_free_set *s, uint64_t size_bytes, uint64_t address, uint32_t block);
/* Remove a key, which must be in the set. */
void tmk_free_set_remove(struct tmk_free_set *s, uint64_t size_bytes, uint64_t address,
                         uint32_t block);

/* Find the first key of at least this size and, within that size, at least this address. */
struct tmk_free_cursor tmk_free_set_find(const struct tmk_free_set *s, uint64_t size_bytes,
                                         uint64_t address);
static inline struct tmk_free_cursor tmk_free_set_begin(void)
{
    return (struct tmk_free_cursor){0, 0};
}
static inline bool tmk_free_set_is_end(const struct tmk_free_set *s, struct tmk_free_cursor c)
{
    return c.leaf >= s->n_leaves;
}
/* Move one key forward, not from the end; or one key back, false at the first. */
void tmk_free_set_next(const struct tmk_free_set *s, struct tmk_free_cursor *c);
bool tmk_free_set_back(const struct tmk_free_set *s, struct tmk_free_cursor *c);
static inline uint32_t tmk_free_set_block(const struct tmk_free_set *s, struct tmk_free_cursor c)
{
    return (uint32_t)(s->leaves[c.leaf]->keys[c.at].place & ((1u << TMK_FREE_SET_INDEX_BITS) - 1));
}
/* Remove the key at a cursor, which is cheaper than to look for it again. The cursor is invalid
 * then. */
void tmk_free_set_remove_at(struct tmk_free_set *s, struct tmk_free_cursor c);

/* The invariants (base/valid.h):
 *   - each leaf in use has keys, as many as fit or fewer, and `n` of them together;
 *   - keys rise, in a leaf and from leaf to leaf, so that none is there twice;
 *   - `firsts` has the first key of each leaf. */
bool tmk_free_set_is_valid(const struct tmk_free_set *s);

#endif
