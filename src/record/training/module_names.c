/* SPDX-License-Identifier: MIT */
/* record/training/module_names.c - see module_names.h. Open addressing; at least a quarter stays
 * unused, so that looking for what is not there ends. It is made anew, larger if need be, when it
 * fills up, with what was used and is not any more left out. */
#include "record/training/module_names.h"

#include <stddef.h>

#include "base/region.h"

enum { LEAST_SLOTS = 1 << 12, MOST_SLOTS = 1 << 24 };

struct tmk_module_names tmk_module_names;
static struct tmk_region slots_memory;
static uint32_t n_objects;
static uint32_t n_touched; /* slots that are no longer 0 */

static bool make_name_slots(uint32_t n_slots)
{
    if (tmk_region_init(&slots_memory, n_slots * sizeof *tmk_module_names.slots) < 0)
        return false;
    tmk_module_names.slots = slots_memory.base;
    tmk_module_names.mask = n_slots - 1;
    n_objects = n_touched = 0;
    return true;
}

bool tmk_module_names_reset(void)
{
    if (!tmk_module_names.slots)
        return make_name_slots(LEAST_SLOTS);
    n_objects = n_touched = 0;
    tmk_region_clear(&slots_memory);
    return true;
}

static bool rebuild_slots(void)
{
    struct tmk_region before = slots_memory;
    const struct tmk_module_slot *slots = tmk_module_names.slots;
    uint32_t n = tmk_module_names.mask + 1, n_new = n_objects >= n / 4 ? 2 * n : n;
    if (n_new > MOST_SLOTS || !make_name_slots(n_new))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (slots[i].object <= 1)
            continue;
        tmk_module_names_put((const void *)slots[i].object, slots[i].name);
        if (slots[i].called)
            tmk_module_names_mark((const void *)slots[i].object);
    }
    tmk_region_fini(&before);
    return true;
}

bool tmk_module_names_put(const void *object, uint32_t name)
{
    if (n_touched > tmk_module_names.mask / 4 * 3 && !rebuild_slots())
        return false;
    uint32_t i = tmk_module_names_place((uintptr_t)object);
    struct tmk_module_slot *place = NULL, *slot;
    for (;; i = (i + 1) & tmk_module_names.mask) {
        slot = &tmk_module_names.slots[i];
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
    uint32_t called = slot->object == (uintptr_t)object ? slot->called : 0;
    *slot = (struct tmk_module_slot){.object = (uintptr_t)object, .name = name, .called = called};
    return true;
}

bool tmk_module_names_mark(const void *object)
{
    uint32_t i = tmk_module_names_place((uintptr_t)object);
    while (tmk_module_names.slots[i].object &&
           tmk_module_names.slots[i].object != (uintptr_t)object)
        i = (i + 1) & tmk_module_names.mask;
    struct tmk_module_slot *slot = &tmk_module_names.slots[i];
    bool is_first = slot->object && !slot->called;
    slot->called |= is_first;
    return is_first;
}

void tmk_module_names_remove(uintptr_t object)
{
    if (!tmk_module_names.slots || object <= 1)
        return;
    uint32_t i = tmk_module_names_place(object);
    for (; tmk_module_names.slots[i].object; i = (i + 1) & tmk_module_names.mask) {
        if (tmk_module_names.slots[i].object != object)
            continue;
        tmk_module_names.slots[i].object = 1;
        n_objects--;
        return;
    }
}
