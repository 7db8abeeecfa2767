/* SPDX-License-Identifier: MIT */
/* record/torch/address_table.h - a table from addresses to a number, mostly a size.
 *
 * Any thread may put and take, without a lock. The table never grows; memory is used for the pages
 * that were needed. It has levels, each four times as large as the one before: an address is on the
 * first level that had room near its place. */
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

/* The slots of all levels, one level behind the other. */
struct tmk_address_table {
    struct tmk_address_slot *slots;
    unsigned bits; /* the first level has 1 << bits of them */
    unsigned n_levels;
};

/* Number of slots on the levels before this one; for n_levels, of all. */
static inline size_t tmk_address_slots_before(const struct tmk_address_table *table, unsigned level)
{
    return (((size_t)1 << 2 * level) - 1) / 3 << table->bits;
}

/* Put an address. False: there is no room near its place on any level. An address is put once, and
 * taken once after that. */
bool tmk_address_table_put(const struct tmk_address_table *table, uintptr_t address,
                           uint64_t size_bytes);
/* Take an address out; returns its number, 0 when it was never put. */
uint64_t tmk_address_table_take(const struct tmk_address_table *table, uintptr_t address);

#endif
