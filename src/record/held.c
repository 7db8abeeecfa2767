/* SPDX-License-Identifier: MIT */
/* record/held.c - see held.h. A recording that has not heard of what is held already is told that
 * first. */
#include "record/held.h"

#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "record/intern.h"
#include "record/lane.h"
#include "record/pystack.h"
#include "record/torch.h"

enum { MAX_HELD = 1 << 18, MAX_DEVICES = 64, DEVICE_CUDA = 1 };

static struct {
    _Atomic pid_t busy;        /* whose thread has it, 0: nobody's */
    _Atomic pid_t owner;       /* whose it is: a child has not what its parent has */
    struct tmk_segments table; /* items NULL: not made yet */
    uint32_t generation;       /* of the recording that knows all of it */
    uint64_t pool_bytes[MAX_DEVICES];
    bool has_blocks[MAX_DEVICES]; /* so that what its pools hold is what is reserved for blocks */
    _Atomic uint64_t devices;     /* a bit each */
    _Atomic uint64_t n_changes;   /* what began and ended */
} held;

static void unlock(void)
{
    atomic_store_explicit(&held.busy, 0, memory_order_release);
}

static void start_over(pid_t self)
{
    tmk_segments_forget(&held.table);
    atomic_store(&held.devices, 0);
    for (int i = 0; i < MAX_DEVICES; i++) {
        held.pool_bytes[i] = 0;
        held.has_blocks[i] = false;
    }
    atomic_store(&held.owner, self);
}

/* False in a child that was forked while another thread had it, or without memory. Who has it may
 * be arming the recorder, which takes milliseconds. */
static bool lock(void)
{
    pid_t self = getpid(), holder = 0;
    while (!atomic_compare_exchange_weak_explicit(&held.busy, &holder, self, memory_order_acquire,
                                                  memory_order_relaxed)) {
        if (holder && holder != self)
            return false;
        holder = 0;
        sched_yield();
    }
    if (!held.table.items && tmk_segments_init(&held.table, MAX_HELD) < 0) {
        unlock();
        return false;
    }
    if (atomic_load(&held.owner) != self)
        start_over(self);
    return true;
}

/* ---- events; with the lock ---- */

static uint16_t device_of(const struct tmk_driver_segment *item)
{
    return (uint16_t)(DEVICE_CUDA << 8 | item->device);
}

static uint64_t reserved_on(uint16_t device)
{
    return device < MAX_DEVICES ? held.pool_bytes[device] : 0;
}

static void say_begin(struct tmk_lane *lane, const struct tmk_driver_segment *item, uint32_t stack)
{
    tmk_lane_put(lane, TMK_KIND_SEGMENT, device_of(item), stack, item->address,
                 item->size_bytes | (uint64_t)item->kind << TMK_SIZE_BITS);
}

/* What is there already: of a moment and a stack that nobody knows. */
static void say_all(struct tmk_lane *lane)
{
    if (held.generation == lane->generation)
        return;
    held.generation = lane->generation;
    for (uint32_t i = 0; i < held.table.n; i++)
        if (!held.table.items[i].is_block)
            say_begin(lane, &held.table.items[i], 0);
}

static void record_begin(const struct tmk_driver_segment *item)
{
    if (item->is_block) {
        held.has_blocks[item->device % MAX_DEVICES] = true;
        tmk_torch_note_block(device_of(item), item->address, item->size_bytes,
                             reserved_on(item->device), item->stream);
        return;
    }
    struct tmk_lane *lane = tmk_lane_enter();
    if (!lane)
        return;
    say_all(lane);
    say_begin(lane, item, tmk_pystack_native_id(lane));
    tmk_lane_leave(lane);
}

static void record_end(const struct tmk_driver_segment *item)
{
    if (item->is_block) {
        tmk_torch_note_free(device_of(item), item->address, reserved_on(item->device));
        return;
    }
    struct tmk_lane *lane = tmk_lane_enter();
    if (!lane)
        return;
    say_all(lane);
    tmk_lane_put(lane, TMK_KIND_SEGMENT_END, device_of(item), 0, item->address,
                 (uint64_t)item->kind << TMK_SIZE_BITS);
    tmk_lane_leave(lane);
}

/* Recorded before the table has it, else it would be said twice. What is there already, and alike,
 * was noted by a call of the driver's inside of this one. */
static void begin(const struct tmk_driver_segment *item)
{
    struct tmk_driver_segment *old = tmk_segments_find(&held.table, item->kind, item->address);
    if (old && old->size_bytes == item->size_bytes) {
        old->n_refs += item->kind == TMK_SEGMENT_IPC; /* opened again: the same address */
        return;
    }
    record_begin(item);
    tmk_segments_begin(&held.table, item);
    if (item->device < MAX_DEVICES)
        atomic_fetch_or(&held.devices, UINT64_C(1) << item->device);
    atomic_fetch_add(&held.n_changes, 1);
}

static bool end(unsigned kind, uint64_t address, struct tmk_driver_segment *ret)
{
    struct tmk_driver_segment *item = tmk_segments_find(&held.table, kind, address);
    if (!item)
        return false;
    if (kind == TMK_SEGMENT_IPC && item->n_refs > 0) {
        item->n_refs--;
        return false;
    }
    tmk_segments_end(&held.table, kind, address, ret);
    atomic_fetch_add(&held.n_changes, 1);
    record_end(ret);
    return true;
}

static struct tmk_driver_segment *find_physical(uint64_t handle)
{
    return tmk_segments_find(&held.table, TMK_SEGMENT_PHYSICAL, handle);
}

static void end_if_unheld(const struct tmk_driver_segment *item)
{
    struct tmk_driver_segment gone;
    if (item->n_refs == 0 && item->n_mappings == 0)
        end(TMK_SEGMENT_PHYSICAL, item->address, &gone);
}

uint64_t tmk_held_devices(uint64_t *ret_n_changes)
{
    *ret_n_changes = atomic_load(&held.n_changes);
    return atomic_load(&held.owner) == getpid() ? atomic_load(&held.devices) : 0;
}

/* ---- what the driver's calls mean ---- */

void tmk_held_begin(const struct tmk_driver_segment *item)
{
    if (!lock())
        return;
    begin(item);
    unlock();
}

bool tmk_held_end(unsigned kind, uint64_t address, struct tmk_driver_segment *ret)
{
    if (!lock())
        return false;
    bool was_there = end(kind, address, ret);
    unlock();
    return was_there;
}

bool tmk_held_end_pointer(uint64_t address, struct tmk_driver_segment *ret)
{
    return tmk_held_end(TMK_SEGMENT_DEVICE, address, ret) ||
           tmk_held_end(TMK_SEGMENT_ASYNC, address, ret) ||
           tmk_held_end(TMK_SEGMENT_MANAGED, address, ret);
}

void tmk_held_retain(uint64_t handle)
{
    if (!lock())
        return;
    struct tmk_driver_segment *item = find_physical(handle);
    if (item)
        item->n_refs++;
    unlock();
}

/* Where it has no owner any more the driver will refuse. */
void tmk_held_release(uint64_t handle)
{
    if (!lock())
        return;
    struct tmk_driver_segment *item = find_physical(handle);
    if (item && item->n_refs > 0) {
        item->n_refs--;
        end_if_unheld(item);
    }
    unlock();
}

void tmk_held_map(const struct tmk_driver_segment *mapping)
{
    if (!lock())
        return;
    struct tmk_driver_segment *item = find_physical(mapping->owner);
    if (item)
        item->n_mappings++;
    begin(mapping);
    unlock();
}

uint16_t tmk_held_device(unsigned kind, uint64_t handle, uint16_t otherwise)
{
    if (!lock())
        return otherwise;
    const struct tmk_driver_segment *item = tmk_segments_find(&held.table, kind, handle);
    uint16_t device = item ? item->device : otherwise;
    unlock();
    return device;
}

static bool unmap(uint64_t address, uint64_t *ret_size_bytes)
{
    struct tmk_driver_segment mapping;
    if (!end(TMK_SEGMENT_MAPPING, address, &mapping))
        return false;
    struct tmk_driver_segment *item = find_physical(mapping.owner);
    if (item && item->n_mappings > 0) {
        item->n_mappings--;
        end_if_unheld(item);
    }
    *ret_size_bytes = mapping.size_bytes;
    return true;
}

/* Mostly one, or one behind the other; where there are holes all are looked at. */
void tmk_held_unmap(uint64_t address, uint64_t size_bytes)
{
    uint64_t at = address, stop = address + size_bytes, n = 0;
    if (!lock())
        return;
    while (at < stop && unmap(at, &n))
        at += n;
    for (uint32_t i = 0; at < stop && i < held.table.n;) {
        const struct tmk_driver_segment *item = &held.table.items[i];
        bool is_in =
            item->kind == TMK_SEGMENT_MAPPING && item->address >= at && item->address < stop;
        if (!is_in || !unmap(item->address, &n))
            i++; /* else another stands in its place now */
    }
    unlock();
}

void tmk_held_pool(uint64_t pool, uint16_t device, uint64_t size_bytes)
{
    struct tmk_driver_segment before = {0};
    if (!lock())
        return;
    const struct tmk_driver_segment *known = tmk_segments_find(&held.table, TMK_SEGMENT_POOL, pool);
    if ((known ? known->size_bytes : 0) != size_bytes) {
        if (known)
            end(TMK_SEGMENT_POOL, pool, &before);
        if (device < MAX_DEVICES)
            held.pool_bytes[device] += size_bytes - before.size_bytes;
        if (size_bytes)
            begin(&(struct tmk_driver_segment){.address = pool,
                                               .size_bytes = size_bytes,
                                               .device = device,
                                               .kind = TMK_SEGMENT_POOL});
        if (device < MAX_DEVICES && held.has_blocks[device])
            tmk_torch_note_reserved((uint16_t)(DEVICE_CUDA << 8 | device), reserved_on(device));
    }
    unlock();
}

uint64_t tmk_held_pool_bytes(uint16_t device)
{
    if (!lock())
        return 0;
    uint64_t bytes = reserved_on(device);
    unlock();
    return bytes;
}

void tmk_held_end_pool(uint64_t pool, uint16_t device)
{
    tmk_held_pool(pool, device, 0);
    if (!lock())
        return;
    for (uint32_t i = 0; i < held.table.n; i++)
        if (held.table.items[i].kind == TMK_SEGMENT_ASYNC && held.table.items[i].owner == pool)
            held.table.items[i].owner = 0;
    unlock();
}

static void end_all(bool (*is_in)(const struct tmk_driver_segment *item, uint64_t what),
                    uint64_t what)
{
    struct tmk_driver_segment gone;
    if (!lock())
        return;
    for (uint32_t i = 0; i < held.table.n;) {
        const struct tmk_driver_segment *item = &held.table.items[i];
        if (!is_in(item, what) || !end(item->kind, item->address, &gone))
            i++;
        else if (gone.kind == TMK_SEGMENT_POOL && gone.device < MAX_DEVICES)
            held.pool_bytes[gone.device] -= gone.size_bytes;
    }
    unlock();
}

static bool is_of_context(const struct tmk_driver_segment *item, uint64_t context)
{
    bool has_context = item->kind != TMK_SEGMENT_MAPPING && item->kind != TMK_SEGMENT_ASYNC;
    return has_context && item->owner == context;
}

void tmk_held_end_context(uint64_t context)
{
    if (context)
        end_all(is_of_context, context);
}

static bool is_of_pools(const struct tmk_driver_segment *item, uint64_t device)
{
    return item->device == device &&
           (item->kind == TMK_SEGMENT_POOL || item->kind == TMK_SEGMENT_ASYNC);
}

void tmk_held_end_device(uint16_t device, uint64_t primary)
{
    tmk_held_end_context(primary);
    end_all(is_of_pools, device);
}
