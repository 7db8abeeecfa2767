/* SPDX-License-Identifier: MIT */
/* record/torch/address_table.c - see address_table.h. */
#include "record/torch/address_table.h"

enum { FIRST_PROBES = 16, WAS_USED = 1 };

/* Near the place of an address on a level; each way round its end. */
struct probe {
    struct tmk_address_slot *level;
    size_t place, mask;
    size_t n; /* slots looked at: few on a full level, behind which there is another */
};

static inline struct probe probe_of(const struct tmk_address_table *table, unsigned level,
                                    uintptr_t address)
{
    unsigned bits = table->bits + 2 * level;
    uint64_t hash = (address >> 6) * UINT64_C(0x9e3779b97f4a7c15);
    return (struct probe){table->slots + tmk_address_slots_before(table, level),
                          (size_t)(hash >> (64 - bits)), ((size_t)1 << bits) - 1,
                          (size_t)FIRST_PROBES << 2 * level};
}

static bool put_on_level(struct probe near, uintptr_t address, uint64_t size_bytes)
{
    for (size_t i = 0; i < near.n; i++) {
        struct tmk_address_slot *slot = &near.level[(near.place + i) & near.mask];
        uintptr_t there = atomic_load_explicit(&slot->address, memory_order_relaxed);
        if (there <= WAS_USED && atomic_compare_exchange_strong(&slot->address, &there, address)) {
            atomic_store_explicit(&slot->size_bytes, size_bytes, memory_order_relaxed);
            return true;
        }
    }
    return false;
}

bool tmk_address_table_put(const struct tmk_address_table *table, uintptr_t address,
                           uint64_t size_bytes)
{
    for (unsigned level = 0; level < table->n_levels; level++)
        if (put_on_level(probe_of(table, level, address), address, size_bytes))
            return true;
    return false;
}

/* False: it may be on the next level, since here there never was a free slot. */
static bool take_from_level(struct probe near, uintptr_t address, uint64_t *ret_size_bytes)
{
    for (size_t i = 0; i < near.n; i++) {
        struct tmk_address_slot *slot = &near.level[(near.place + i) & near.mask];
        uintptr_t there = atomic_load_explicit(&slot->address, memory_order_relaxed);
        if (there == address) {
            *ret_size_bytes = atomic_load_explicit(&slot->size_bytes, memory_order_relaxed);
            atomic_store_explicit(&slot->address, WAS_USED, memory_order_release);
        }
        if (there == address || there == 0)
            return true;
    }
    return false;
}

uint64_t tmk_address_table_take(const struct tmk_address_table *table, uintptr_t address)
{
    uint64_t size_bytes = 0;
    for (unsigned level = 0; level < table->n_levels; level++)
        if (take_from_level(probe_of(table, level, address), address, &size_bytes))
            break;
    return size_bytes;
}
