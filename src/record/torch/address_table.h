/* SPDX-License-Identifier: MIT */
/* record/torch/address_table.h - addresses and a number for each, mostly a size.
 *
 * Any thread may put and take, without a lock. The table never grows: its pages are there when they
 * are needed. Levels lie one behind the other, each four times as large as the one before: an
 * address is in the first that had room near its place. */
#ifndef TMK_RECORD_ADDRESS_TABLE_H
#define TMK_RECORD_ADDRESS_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tmk_address_slot {
    _Atomic uintptr_t address; /* 0: never used, 1: was used */
    _Atomic uint64_t size_bytes;
};

/* Levels one behind the other, each four times as large as the one before: a block is in the first
 * that had room near its place. */
struct tmk_address_table {
    struct tmk_address_slot *slots;
    unsigned bits; /* the first level has 1 << bits of them */
    unsigned n_levels;
};

/* Slots of the levels before this one; of all with n_levels. */
static inline size_t tmk_address_slots_before(const struct tmk_address_table *table, unsigned level)
{
    return (((size_t)1 << 2 * level) - 1) / 3 << table->bits;
}

/* False: no room near its place on any level. Any thread, no lock; an address is put once, and
 * taken once after that. */
bool tmk_address_table_put(const struct tmk_address_table *table, uintptr_t address,
                           uint64_t size_bytes);
/* Its size; 0 when it was never put. */
uint64_t tmk_address_table_take(const struct tmk_address_table *table, uintptr_t address);

#endif
