/* SPDX-License-Identifier: MIT */
/* record/training/module_names.h - the names of torch's modules, by the object's address.
 *
 * All of it needs the interpreter's lock. An object that dies is taken out (the Python side holds a
 * weak reference to each), so that another object at its address does not get its name. */
#ifndef TMK_RECORD_MODULE_NAMES_H
#define TMK_RECORD_MODULE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

struct tmk_module_slot {
    uintptr_t object; /* 0: never used; 1: was used */
    uint32_t name;    /* string id */
    uint32_t called;  /* 1: the program itself has called it, as a root */
};

/* Stands for a name: the module was asked about and has none. */
#define TMK_MODULE_UNNAMED 0x80000000u

struct tmk_module_names {
    struct tmk_module_slot *slots; /* NULL: not made yet */
    uint32_t mask;                 /* their number - 1 */
};
extern struct tmk_module_names tmk_module_names;

/* Empty the table, for a new recording. False when there is no memory. */
bool tmk_module_names_reset(void);
/* Set a module's name. False when there is no memory for more. */
bool tmk_module_names_put(const void *object, uint32_t name);
void tmk_module_names_remove(uintptr_t object);
/* Mark a module as called by the program. True the first time, for a module that is in the
 * table. */
bool tmk_module_names_mark(const void *object);

static inline uint32_t tmk_module_names_place(uintptr_t object)
{
    return (uint32_t)((object >> 4) * 0x9e3779b97f4a7c15u >> 32) & tmk_module_names.mask;
}

/* The name of a module; 0: not known. */
static inline uint32_t tmk_module_names_find(const void *object)
{
    uint32_t i = tmk_module_names_place((uintptr_t)object);
    for (;; i = (i + 1) & tmk_module_names.mask) {
        const struct tmk_module_slot *slot = &tmk_module_names.slots[i];
        if (slot->object == (uintptr_t)object)
            return slot->name;
        if (slot->object == 0)
            return 0;
    }
}

#endif
