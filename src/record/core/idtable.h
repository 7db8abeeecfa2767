/* SPDX-License-Identifier: MIT */
/* record/core/idtable.h - hashes to ids, lock-free, of a fixed size.
 *
 * What is interned is told apart by a 64-bit hash alone; that two of a hundred thousand collide has
 * a chance of one in a few billion. Two threads that meet something new at once may both give it an
 * id and define it: the trace allows that, one of the two is remembered. */
#ifndef TMK_RECORD_IDTABLE_H
#define TMK_RECORD_IDTABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/region.h"

struct tmk_idslot {
    _Atomic uint64_t hash; /* 0: free */
    _Atomic uint32_t id;   /* 0: another thread is about to set it */
};

struct tmk_idtable {
    struct tmk_idslot *slots;
    uint32_t mask;
    _Atomic uint32_t n_ids; /* handed out */
    struct tmk_region memory;
};

/* Make the table, or empty it, for a new trace. n_slots is a power of two. 0 or TMK_ENOMEM. */
int tmk_idtable_reset(struct tmk_idtable *t, uint32_t n_slots);

/* A hash is never 0 here. */
static inline uint64_t tmk_idtable_hash(uint64_t hash)
{
    return hash | 1;
}

/* The slot with this hash or the free one where it belongs; NULL when the table is crowded. */
struct tmk_idslot *tmk_idtable_find(const struct tmk_idtable *t, uint64_t hash);

/* The id of a hash, 0 when it has none yet. Mostly it is in the first slot looked at. */
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

/* An id for something new, to be defined and then remembered; 0 when the table is crowded. */
uint32_t tmk_idtable_new(struct tmk_idtable *t, uint64_t hash);

/* For tests, while nobody changes it: each hash is found in its slot, and each id was handed out. */
bool tmk_idtable_is_valid(const struct tmk_idtable *t);

/* Remember that `hash` is `id`. Losing the race for the slot is fine: both ids are defined. */
void tmk_idtable_remember(struct tmk_idtable *t, uint64_t hash, uint32_t id);

#endif
