/* SPDX-License-Identifier: MIT */
/* record/loader/import_slots.h - the import slots of loaded modules, and words of their data.
 *
 * A call from one module to another's function goes through a slot that the loader has filled with
 * that function's address. Whoever writes another address there stands in front of the function,
 * for all calls of that module. */
#ifndef TMK_RECORD_IMPORT_SLOTS_H
#define TMK_RECORD_IMPORT_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

struct tmk_slot_module; /* the module, while it is visited */

struct tmk_import_slot {
    const struct tmk_slot_module *module;
    const char *path; /* of the module's file, as the loader names it */
    const char *name; /* of the symbol that is imported */
    uintptr_t *at;
};

typedef void tmk_import_slot_visit(const struct tmk_import_slot *slot, void *arg);

/* Visit each import slot of each loaded module but our own library. The loader's lock is held. */
void tmk_import_slots_visit(tmk_import_slot_visit *function, void *arg);

/* For a slot that is visited: store this value; `stays_open` leaves a read-only page writable.
 * False: the page cannot be written. */
bool tmk_import_slot_write(const struct tmk_import_slot *slot, uintptr_t value, bool stays_open);

/* For a slot that is visited: whether this value of it leads to the loader, which binds the slot at
 * the first call. */
bool tmk_import_slot_is_unbound(const struct tmk_import_slot *slot, uintptr_t value);

/* Store a word of a module's data, which the loader may have made read-only. Any thread. */
bool tmk_import_word_write(uintptr_t *at, uintptr_t value, bool stays_open);

#endif
