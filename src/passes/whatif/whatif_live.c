/* SPDX-License-Identifier: MIT */
/* passes/whatif/whatif_live.c - the live blocks of a what-if sweep by address, each with its slot.
 * They have an index of their own, since entries of the state move. */
#include <stdlib.h>

#include "base/hash.h"
#include "base/index.h"
#include "kit/grow.h"
#include "passes/whatif/whatif_internal.h"

static uint64_t live_hash(uint64_t address)
{
    return tmk_hash_mix(address, 0);
}

/* Slot + 1 of the block at an address; 0: there is none. */
static uint32_t find_live(const struct tmk_whatif *w, uint64_t hash, uint64_t address)
{
    struct tmk_probe probe = tmk_index_probe(&w->live_index, hash);
    uint32_t i;
    while ((i = tmk_probe_next(&probe)) && w->live[i - 1].address != address)
        continue;
    return i;
}

/* Of two blocks at one address, because a free was not seen, the later one counts. */
static void index_live(struct tmk_whatif *w, uint64_t address, uint32_t number)
{
    uint64_t hash = live_hash(address);
    uint32_t old = find_live(w, hash, address);
    if (!old) {
        tmk_index_add(&w->live_index, hash, number);
        return;
    }
    tmk_index_renumber(&w->live_index, hash, old, number);
    w->live[old - 1].slot = 0;
}

/* A slot for a new live block; NO_SLOT: no memory. */
uint32_t tmk_whatif_add_live(struct tmk_whatif *w, uint64_t address)
{
    if (!w->n_free_slots && w->n_slots >= NO_SLOT)
        return NO_SLOT;
    if (tmk_grow_index(&w->live_index) < 0 ||
        TMK_GROW(w->live, w->n_slots + 1ull, w->live_room) < 0) {
        w->failed = true;
        return NO_SLOT;
    }
    uint32_t slot = w->n_free_slots ? w->free_slots[--w->n_free_slots] : w->n_slots++;
    index_live(w, address, slot + 1);
    w->live[slot] = (struct live_block){address, slot + 1};
    return slot;
}

/* The slot of a block that goes; NO_SLOT: it was not known. */
uint32_t tmk_whatif_remove_live(struct tmk_whatif *w, uint64_t address)
{
    uint64_t hash = live_hash(address);
    uint32_t i = find_live(w, hash, address);
    if (!i)
        return NO_SLOT;
    if (TMK_GROW(w->free_slots, w->n_free_slots + w->n_held + 1, w->free_room) < 0) {
        w->failed = true;
        return NO_SLOT;
    }
    w->free_slots[w->n_free_slots++] = i - 1;
    w->live[i - 1].slot = 0;
    tmk_index_remove(&w->live_index, hash, i);
    return i - 1;
}

bool tmk_whatif_is_live(const struct tmk_whatif *w, uint64_t address)
{
    return find_live(w, live_hash(address), address) != 0;
}
