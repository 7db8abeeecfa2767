/* SPDX-License-Identifier: MIT */
/* record/core/idtable.h - a lock-free table from hashes to ids, of a fixed size.
 *
 * Items are told apart by a 64-bit hash alone: the chance that two of a hundred thousand collide is
 * one in a few billion. Two threads that meet a new item at once may both give it an id and define
 * it. The trace allows that; one of the two ids is remembered. */
#ifndef TMK_RECORD_IDTABLE_H
#define TMK_RECORD_IDTABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/region.h"

struct tmk_idslot {
    _Atomic uint64_t hash; /* 0: free */
    _Atomic uint32_t id;   /* 0: another thread is about to store it */
};

struct tmk_idtable {
    struct tmk_idslot *slots;
    uint32_t mask;
    _Atomic uint32_t n_ids; /* how many were handed out */
    struct tmk_region memory;
};

/* Make the table, or empty one that was made, for a new trace. n_slots is a power of two. 0 or
 * TMK_ENOMEM. */
int tmk_idtable_reset(struct tmk_idtable *t, uint32_t n_slots);

/* Make a hash that is never 0. */
static inline uint64_t tmk_idtable_hash(uint64_t hash)
{
    return hash | 1;
}

/* Find the slot with this hash, or the free slot where it belongs; NULL when the table is
 * crowded. */
struct tmk_idslot *tmk_idtable_find(const struct tmk_idtable *t, uint64_t hash);

/* Return the id of a hash, 0 when it has none yet. The first slot that is looked at mostly has it.
 */
static inline uint32_t tmk_idtable_known(const struct tmk_idtable *t, uint64_t hash)
{
    struct tmk_idslot *slot = &t->slots[(uint32_t)hash & t->mask];
    if (__builtin_expect(atomic_load_explicit(&slot->hash, memory_order_acquire) != hash, 0)) {
        slot = tmk_idtable_find(t, hash);
        if (!slot || atomic_load_explicit(&slot->hash, memory_order_relaxed) != hash)
            return 0;
    }
    return atomic_load_explicit(&slot->id, memory_order_acquire);
}

/* Hand out an id for a new item, to be defined and then remembered; 0 when the table is crowded. */
uint32_t tmk_idtable_new(struct tmk_idtable *t, uint64_t hash);

/* Check the table's invariant, in tests, while nobody changes it: each hash is found in its slot,
 * and each id was handed out. */
bool tmk_idtable_is_valid(const struct tmk_idtable *t);

/* Remember that `hash` is `id`. Losing the race for the slot is fine: both ids are defined. */
void tmk_idtable_remember(struct tmk_idtable *t, uint64_t hash, uint32_t id);

#endif
