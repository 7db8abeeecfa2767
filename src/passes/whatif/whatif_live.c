/* SPDX-License-Identifier: MIT */
/* passes/whatif/whatif_live.c - the live blocks of a what-if sweep by address, each with its
 * slot. They have a table of their own, since entries of the state move. */
#include <stdlib.h>

#include "base/hash.h"
#include "kit/grow.h"
#include "passes/whatif/whatif_internal.h"

static uint64_t find_live_place(const struct tmk_whatif *w, uint64_t address)
{
    uint64_t i = tmk_hash_mix(address, 0) & (w->live_room - 1);
    while (w->live[i].slot && w->live[i].address != address)
        i = (i + 1) & (w->live_room - 1);
    return i;
}

static bool grow_live(struct tmk_whatif *w)
{
    struct live_block *old = w->live;
    uint64_t n = w->live_room;
    if (2 * (w->n_live + 1) <= n)
        return true;
    w->live = calloc(n ? 2 * n : 1024, sizeof *w->live);
    if (!w->live) {
        w->live = old;
        w->failed = true;
        return false;
    }
    w->live_room = n ? 2 * n : 1024;
    for (uint64_t i = 0; i < n; i++)
        if (old[i].slot)
            w->live[find_live_place(w, old[i].address)] = old[i];
    free(old);
    return true;
}

/* Give a new live block a slot. Returns NO_SLOT without memory. */
uint32_t tmk_whatif_add_live(struct tmk_whatif *w, uint64_t address)
{
    if (!grow_live(w) || (!w->n_free_slots && w->n_slots >= NO_SLOT))
        return NO_SLOT;
    uint32_t slot = w->n_free_slots ? w->free_slots[--w->n_free_slots] : w->n_slots++;
    w->live[find_live_place(w, address)] = (struct live_block){address, slot + 1};
    w->n_live++;
    return slot;
}

/* Later entries that were displaced by this one move back. */
static void close_hole(struct tmk_whatif *w, uint64_t hole)
{
    uint64_t mask = w->live_room - 1;
    for (uint64_t i = (hole + 1) & mask; w->live[i].slot; i = (i + 1) & mask) {
        uint64_t home = tmk_hash_mix(w->live[i].address, 0) & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            w->live[hole] = w->live[i];
            hole = i;
        }
    }
    w->live[hole].slot = 0;
}

/* Take the slot of a block that goes. Returns NO_SLOT if it was not known. */
uint32_t tmk_whatif_remove_live(struct tmk_whatif *w, uint64_t address)
{
    uint64_t i = w->live_room ? find_live_place(w, address) : 0;
    if (!w->live_room || !w->live[i].slot)
        return NO_SLOT;
    uint32_t slot = w->live[i].slot - 1;
    uint32_t *more =
        tmk_grow(w->free_slots, w->n_free_slots + w->n_held + 1, &w->free_room, sizeof *more);
    if (!more) {
        w->failed = true;
        return NO_SLOT;
    }
    w->free_slots = more;
    more[w->n_free_slots++] = slot;
    w->n_live--;
    close_hole(w, i);
    return slot;
}

bool tmk_whatif_is_live(const struct tmk_whatif *w, uint64_t address)
{
    return w->live_room && w->live[find_live_place(w, address)].slot;
}
