/* SPDX-License-Identifier: MIT */
/* fake_cuda_ranges.c - tables of addresses, addresses that are nobody's, and slabs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fake_cuda.h"

struct fake_table fake_allocations, fake_registered, fake_reserved, fake_mappings, fake_slabs;

/* ---- tables ---- */

int fake_table_first(const struct fake_table *t, CUdeviceptr address)
{
    int low = 0, high = t->n;
    while (low < high) {
        int middle = (low + high) / 2;
        if (t->ranges[middle].start + t->ranges[middle].size <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct fake_range *fake_table_find(const struct fake_table *t, CUdeviceptr address)
{
    int i = fake_table_first(t, address);
    return i < t->n && t->ranges[i].start <= address ? &t->ranges[i] : NULL;
}

struct fake_range *fake_table_at(const struct fake_table *t, CUdeviceptr start, enum fake_kind kind)
{
    struct fake_range *range = fake_table_find(t, start);
    return range && range->start == start && range->kind == kind ? range : NULL;
}

void fake_table_add(struct fake_table *t, const struct fake_range *range)
{
    if (t->n == t->room) {
        t->room = t->room ? 2 * t->room : 64;
        t->ranges = realloc(t->ranges, (size_t)t->room * sizeof *t->ranges);
        if (!t->ranges)
            abort();
    }
    int i = fake_table_first(t, range->start);
    memmove(&t->ranges[i + 1], &t->ranges[i], (size_t)(t->n - i) * sizeof *t->ranges);
    t->ranges[i] = *range;
    t->n++;
}

void fake_table_remove(struct fake_table *t, const struct fake_range *range)
{
    int i = (int)(range - t->ranges);
    t->n--;
    memmove(&t->ranges[i], &t->ranges[i + 1], (size_t)(t->n - i) * sizeof *t->ranges);
}

/* ---- addresses ---- */

CUdeviceptr fake_addresses_take(size_t size)
{
    size_t wanted = fake_round_up(size, FAKE_GRANULE_BYTES);
    char *mapped = mmap(NULL, wanted + FAKE_GRANULE_BYTES, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
        return 0;
    size_t before = fake_round_up((uintptr_t)mapped, FAKE_GRANULE_BYTES) - (uintptr_t)mapped;
    if (before)
        munmap(mapped, before);
    munmap(mapped + before + wanted, FAKE_GRANULE_BYTES - before);
    return (uintptr_t)mapped + before;
}

void fake_addresses_give_back(CUdeviceptr start, size_t size)
{
    munmap((char *)(uintptr_t)start, fake_round_up(size, FAKE_GRANULE_BYTES));
}

/* ---- slabs ---- */

CUdeviceptr fake_slab_gap(const struct fake_range *slab, size_t size)
{
    CUdeviceptr at = slab->start, end = slab->start + slab->size;
    const struct fake_table *live = &fake_allocations;
    for (int i = fake_table_first(live, at); i < live->n && live->ranges[i].start < end; i++) {
        if (live->ranges[i].start - at >= size)
            return at;
        at = fake_round_up(live->ranges[i].start + live->ranges[i].size, FAKE_ALIGNMENT);
    }
    return at < end && end - at >= size ? at : 0;
}

bool fake_slab_is_empty(const struct fake_range *slab)
{
    int i = fake_table_first(&fake_allocations, slab->start);
    return i == fake_allocations.n || fake_allocations.ranges[i].start >= slab->start + slab->size;
}

CUresult fake_slab_add(struct fake_range *slab)
{
    CUresult code = fake_card_take(slab->device, slab->size);
    if (code)
        return code;
    slab->kind = FAKE_SLAB;
    slab->charged_bytes = slab->size;
    slab->start = fake_addresses_take(slab->size);
    if (slab->start == 0) {
        fake_card_give_back(slab->device, slab->size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    fake_table_add(&fake_slabs, slab);
    return CUDA_SUCCESS;
}

void fake_slab_remove(const struct fake_range *slab)
{
    fake_addresses_give_back(slab->start, slab->size);
    fake_card_give_back(slab->device, slab->charged_bytes);
    fake_table_remove(&fake_slabs, slab);
}
