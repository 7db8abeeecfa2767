/* SPDX-License-Identifier: MIT */
/* base/index.h - the index: finds the items of an array by their key.
 *
 * The items lie in an array of the caller, who numbers them from 1 in any order. The index is an
 * open hash table of these numbers. Beside each number it keeps 32 bits of the item's hash, so that
 * it never has to look at an item: only the caller knows what a key is and which item has it.
 *
 *     uint64_t hash = tmk_hash_u64(address);
 *     struct tmk_probe probe = tmk_index_probe(&t->index, hash);
 *     uint32_t i;
 *     while ((i = tmk_probe_next(&probe)) && t->items[i - 1].address != address)
 *         continue;
 *     if (!i)
 *         tmk_index_add(&t->index, hash, i = ++t->n_items); // with room: tmk_index_has_room()
 *
 * Invariant: at most half of the slots are taken, and no slot is free between the slot that an
 * item's hash says and the one where its number is. Removing therefore moves numbers back.
 *
 * The slots are the caller's too, since the recorder may not call malloc(); kit/grow.h has a
 * function that makes them. A zeroed index without slots is an empty one that has no room. */
#ifndef TMK_BASE_INDEX_H
#define TMK_BASE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct tmk_index {
    uint64_t *slots; /* hash << 32 | number; 0: free */
    uint32_t mask;   /* the number of slots in use now, a power of two, less 1; 0: there are none */
    uint32_t n;      /* numbers that are in it */
};

/* Numbers of the items that may have a key. */
struct tmk_probe {
    const uint64_t *slots;
    uint32_t mask, at, hash;
};

static inline struct tmk_probe tmk_index_probe(const struct tmk_index *x, uint64_t hash)
{
    static const uint64_t none = 0;
    return (struct tmk_probe){.slots = x->slots ? x->slots : &none,
                              .mask = x->mask,
                              .at = (uint32_t)hash & x->mask,
                              .hash = (uint32_t)hash};
}

/* The number of the next item that has the hash; 0: there is none. */
static inline uint32_t tmk_probe_next(struct tmk_probe *p)
{
    for (uint64_t slot; (slot = p->slots[p->at]) != 0;) {
        p->at = (p->at + 1) & p->mask;
        if (slot >> 32 == p->hash)
            return (uint32_t)slot;
    }
    return 0;
}

/* How many slots `n_items` items need, but not fewer than `least`, a power of two. */
static inline uint32_t tmk_index_slots_for(uint64_t n_items, uint32_t least)
{
    uint32_t n = least;
    while (n / 2 < n_items && n < 1u << 31)
        n *= 2;
    return n;
}

/* An empty index with the caller's slots, of which the first `n_slots`, all zero, are used. */
static inline struct tmk_index tmk_index_of(uint64_t *slots, uint32_t n_slots)
{
    return (struct tmk_index){.slots = slots, .mask = n_slots - 1};
}

static inline bool tmk_index_has_room(const struct tmk_index *x)
{
    return x->n < (x->mask + 1) / 2;
}

static inline uint32_t tmk_index_n_slots(const struct tmk_index *x)
{
    return x->slots ? x->mask + 1 : 0;
}

/* Forget all numbers. */
static inline void tmk_index_clear(struct tmk_index *x)
{
    if (x->n > 0)
        memset(x->slots, 0, (size_t)tmk_index_n_slots(x) * sizeof *x->slots);
    x->n = 0;
}

/* Forget all numbers, and use the first `n_slots` slots from now on: those that were not in use are
 * zero still. The caller adds again what is to stay. */
static inline void tmk_index_reset(struct tmk_index *x, uint32_t n_slots)
{
    tmk_index_clear(x);
    *x = tmk_index_of(x->slots, n_slots);
}

/* Add an item. Its number is not 0 and not in the index, which has room. */
static inline void tmk_index_add(struct tmk_index *x, uint64_t hash, uint32_t number)
{
    uint32_t mask = x->mask, at = (uint32_t)hash & mask;
    /* It has room, so it has slots. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    while (x->slots[at])
        at = (at + 1) & mask;
    x->slots[at] = hash << 32 | number;
    x->n++;
}

/* The slot of an item; a free one when it is not in the index. */
static inline uint32_t tmk_index_slot_of(const struct tmk_index *x, uint64_t hash, uint32_t number)
{
    uint32_t mask = x->mask, at = (uint32_t)hash & mask;
    while (x->slots[at] && (uint32_t)x->slots[at] != number)
        at = (at + 1) & mask;
    return at;
}

/* An item that is in the index has another number from now on. */
static inline void tmk_index_renumber(struct tmk_index *x, uint64_t hash, uint32_t from,
                                      uint32_t to)
{
    x->slots[tmk_index_slot_of(x, hash, from)] = hash << 32 | to;
}

/* Take an item out that is in the index. Numbers behind it that a probe would not find any more
 * move back. */
static inline void tmk_index_remove(struct tmk_index *x, uint64_t hash, uint32_t number)
{
    uint32_t mask = x->mask, hole = tmk_index_slot_of(x, hash, number);
    for (uint32_t at = (hole + 1) & mask; x->slots[at]; at = (at + 1) & mask) {
        uint32_t home = (uint32_t)(x->slots[at] >> 32) & mask;
        if (((at - home) & mask) < ((at - hole) & mask))
            continue; /* it began behind the hole */
        x->slots[hole] = x->slots[at];
        hole = at;
    }
    x->slots[hole] = 0;
    x->n--;
}

/* Whether the invariant above holds, `n` slots are taken and no number is 0 (base/valid.h). Only
 * the owner can check that the numbers are those of items. */
bool tmk_index_is_valid(const struct tmk_index *x);

#endif
