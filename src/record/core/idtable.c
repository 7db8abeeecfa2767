/* SPDX-License-Identifier: MIT */
/* record/core/idtable.c - see idtable.h. */
#include "record/core/idtable.h"

enum { MAX_PROBES = 64 };

int tmk_idtable_reset(struct tmk_idtable *t, uint32_t n_slots)
{
    int rc = 0;
    if (!t->memory.base)
        rc = tmk_region_init(&t->memory, n_slots * sizeof(struct tmk_idslot));
    else
        tmk_region_clear(&t->memory);
    t->slots = t->memory.base;
    t->mask = n_slots - 1;
    atomic_store(&t->n_ids, 0);
    return rc;
}

struct tmk_idslot *tmk_idtable_find(const struct tmk_idtable *t, uint64_t hash)
{
    uint32_t at = (uint32_t)hash & t->mask;
    for (int i = 0; i < MAX_PROBES; i++, at = (at + 1) & t->mask) {
        uint64_t there = atomic_load_explicit(&t->slots[at].hash, memory_order_acquire);
        if (there == hash || there == 0)
            return &t->slots[at];
    }
    return NULL;
}

uint32_t tmk_idtable_new(struct tmk_idtable *t, uint64_t hash)
{
    return tmk_idtable_find(t, hash) ? 1 + atomic_fetch_add(&t->n_ids, 1) : 0;
}

void tmk_idtable_remember(struct tmk_idtable *t, uint64_t hash, uint32_t id)
{
    struct tmk_idslot *slot = tmk_idtable_find(t, hash);
    uint64_t free_hash = 0;
    if (slot && atomic_compare_exchange_strong(&slot->hash, &free_hash, hash))
        atomic_store_explicit(&slot->id, id, memory_order_release);
}

bool tmk_idtable_is_valid(const struct tmk_idtable *t)
{
    uint32_t n_ids = atomic_load(&t->n_ids);
    if (!t->slots || ((t->mask + 1) & t->mask) != 0)
        return false;
    for (uint32_t i = 0; i <= t->mask; i++) {
        uint64_t hash = atomic_load(&t->slots[i].hash);
        uint32_t id = atomic_load(&t->slots[i].id);
        if (hash ? tmk_idtable_find(t, hash) != &t->slots[i] || id == 0 || id > n_ids : id != 0)
            return false;
    }
    return true;
}
