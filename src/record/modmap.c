/* SPDX-License-Identifier: MIT */
/* record/modmap.c - see modmap.h. Open addressing; at least a quarter stays unused, so that looking
 * for what is not there ends. */
#include "record/modmap.h"

#include <stddef.h>

#include "base/region.h"

struct tmk_modslot *tmk_modmap_slots;
static struct tmk_region memory;
static uint32_t n_objects;
static uint32_t n_touched; /* slots that are no longer 0 */

bool tmk_modmap_reset(void)
{
    n_objects = n_touched = 0;
    if (tmk_modmap_slots) {
        tmk_region_clear(&memory);
        return true;
    }
    if (tmk_region_init(&memory, TMK_MODMAP_SLOTS * sizeof *tmk_modmap_slots) < 0)
        return false;
    tmk_modmap_slots = memory.base;
    return true;
}

/* Modules made anew all the time leave used slots behind: put those together again. */
static void rebuild(void)
{
    static struct tmk_modslot kept[TMK_MODMAP_SLOTS / 2];
    uint32_t n = 0;
    for (uint32_t i = 0; i < TMK_MODMAP_SLOTS && n < TMK_MODMAP_SLOTS / 2; i++)
        if (tmk_modmap_slots[i].object > 1)
            kept[n++] = tmk_modmap_slots[i];
    tmk_region_clear(&memory);
    n_objects = n_touched = 0;
    for (uint32_t i = 0; i < n; i++)
        tmk_modmap_put((const void *)kept[i].object, kept[i].name);
}

bool tmk_modmap_put(const void *object, uint32_t name)
{
    if (n_objects >= TMK_MODMAP_SLOTS / 2)
        return false;
    if (n_touched >= TMK_MODMAP_SLOTS / 4 * 3)
        rebuild();
    uint32_t i = tmk_modmap_place((uintptr_t)object);
    struct tmk_modslot *place = NULL, *slot;
    for (;; i = (i + 1) % TMK_MODMAP_SLOTS) {
        slot = &tmk_modmap_slots[i];
        if (slot->object == (uintptr_t)object || slot->object == 0)
            break;
        if (slot->object == 1 && !place)
            place = slot;
    }
    if (slot->object == 0) {
        slot = place ? place : slot;
        n_touched += !place;
        n_objects++;
    }
    *slot = (struct tmk_modslot){.object = (uintptr_t)object, .name = name};
    return true;
}

void tmk_modmap_remove(uintptr_t object)
{
    uint32_t i = tmk_modmap_place(object);
    if (!tmk_modmap_slots || object <= 1)
        return;
    for (; tmk_modmap_slots[i].object; i = (i + 1) % TMK_MODMAP_SLOTS) {
        if (tmk_modmap_slots[i].object != object)
            continue;
        tmk_modmap_slots[i].object = 1;
        n_objects--;
        return;
    }
}
