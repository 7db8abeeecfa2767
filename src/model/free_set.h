/* SPDX-License-Identifier: MIT */
/* model/free_set.h - free blocks in order of (size, address), for best fit: find the smallest that
 * is large enough, put in, take out, walk.
 *
 * A list of leaves of up to 64 keys each, and beside it the first key of each leaf. Two searches
 * by halves find a place and half a kilobyte is moved at most; that beats trees for the hundreds of
 * blocks that there are, since nothing is chased. No memory is asked for but when leaves become
 * more than they ever were. Sizes and addresses are multiples of 512. */
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
    struct tmk_free_leaf **leaves; /* behind n_leaves: spare ones, up to n_made */
    struct tmk_free_key *firsts;   /* of each leaf */
    uint32_t n_leaves, n_made, room;
    uint64_t n;
};

struct tmk_free_cursor {
    uint32_t leaf, at;
};

/* A zeroed set is an empty one. */
void tmk_free_set_fini(struct tmk_free_set *s);
/* 0 or TMK_ENOMEM. The key must not be there. */
int tmk_free_set_add(struct tmk_free_set *s, uint64_t size_bytes, uint64_t address, uint32_t block);
/* The key must be there. */
void tmk_free_set_remove(struct tmk_free_set *s, uint64_t size_bytes, uint64_t address,
                         uint32_t block);

/* The first of at least this size; of that size, at least this address. */
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
/* One on from a place that is not the end; one back, false at the first. */
void tmk_free_set_next(const struct tmk_free_set *s, struct tmk_free_cursor *c);
bool tmk_free_set_back(const struct tmk_free_set *s, struct tmk_free_cursor *c);
static inline uint32_t tmk_free_set_block(const struct tmk_free_set *s, struct tmk_free_cursor c)
{
    return (uint32_t)(s->leaves[c.leaf]->keys[c.at].place & ((1u << TMK_FREE_SET_INDEX_BITS) - 1));
}
/* The one found by a cursor goes: cheaper than to look for it again. The cursor means nothing then.
 */
void tmk_free_set_remove_at(struct tmk_free_set *s, struct tmk_free_cursor c);

/* The invariants (base/valid.h):
 *   - each leaf in use has keys, as many as fit or fewer, and `n` of them together;
 *   - keys rise, in a leaf and from leaf to leaf, so that none is there twice;
 *   - `firsts` has the first key of each leaf. */
bool tmk_free_set_is_valid(const struct tmk_free_set *s);

#endif
