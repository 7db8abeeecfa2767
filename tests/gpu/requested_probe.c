/* SPDX-License-Identifier: MIT */
/* requested_probe.c - what torch is asked for, seen at its allocator's virtual allocate(): a probe
 * for check_requested.py, which compiles and loads it. No part of the recorder (docs/decisions.md).
 *
 * A c10::Allocator is an object with a table of functions: two destructors, then allocate(), in all
 * versions from 1.13 to 2.11. It returns a DataPtr in memory, so that it is called with the address
 * of the result, the object and the number of bytes. The probe puts its own function into a copy of
 * the table and has the object use that copy: torch's own table stays as it is. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { SLOT = 2, N_SLOTS = 96, MAX_SEEN = 1 << 16 };

typedef void allocate_function(void **ret_data, void *allocator, size_t bytes);

static struct {
    uintptr_t *object;           /* its first word leads to the table */
    uintptr_t *before;           /* the table that it had */
    uintptr_t copy[2 + N_SLOTS]; /* what stands before the first slot belongs to it */
    allocate_function *allocate;
} probe;

static struct {
    uint64_t address, bytes;
} seen[MAX_SEEN];
static uint32_t n_seen;

static void allocate(void **ret_data, void *allocator, size_t bytes)
{
    probe.allocate(ret_data, allocator, bytes);
    uint32_t i = __atomic_fetch_add(&n_seen, 1, __ATOMIC_RELAXED);
    if (i < MAX_SEEN) {
        seen[i].address = (uintptr_t)ret_data[0];
        seen[i].bytes = bytes;
    }
}

/* `n_slots`: as many as the table surely has. 0, or -1 when the probe is in already. */
int probe_start(void *object, unsigned n_slots)
{
    if (probe.object || n_slots <= SLOT || n_slots > N_SLOTS)
        return -1;
    probe.object = object;
    probe.before = (uintptr_t *)probe.object[0];
    memcpy(probe.copy, probe.before - 2, (2 + n_slots) * sizeof *probe.copy);
    probe.allocate = (allocate_function *)probe.copy[2 + SLOT];
    probe.copy[2 + SLOT] = (uintptr_t)allocate;
    n_seen = 0;
    __atomic_store_n(probe.object, (uintptr_t)(probe.copy + 2), __ATOMIC_RELEASE);
    return 0;
}

void probe_stop(void)
{
    if (probe.object)
        __atomic_store_n(probe.object, (uintptr_t)probe.before, __ATOMIC_RELEASE);
    probe.object = NULL;
}

/* The i-th that was seen. Returns how many there were in all. */
uint32_t probe_get(uint32_t i, uint64_t *ret_address, uint64_t *ret_bytes)
{
    if (i < n_seen && i < MAX_SEEN) {
        *ret_address = seen[i].address;
        *ret_bytes = seen[i].bytes;
    }
    return n_seen;
}
