/* SPDX-License-Identifier: MIT */
/* record/driver/driver_table.c - see driver_table.h. A recording that does not know yet what is
 * held is told that first. */
#include "record/driver/driver_table.h"

#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "record/core/intern.h"
#include "record/core/lane.h"
#include "record/core/parts.h"
#include "record/core/seal.h"
#include "record/core/torch_state.h"
#include "record/driver/device_samples.h"
#include "record/driver/driver_calls.h"
#include "record/driver/driver_changes.h"
#include "record/python/pystack.h"
#include "trace/kinds.h"
#include "trace/layout.h"

enum { MAX_HELD = 1 << 18, MAX_DEVICES = TMK_DRIVER_DEVICES };

static struct {
    _Atomic pid_t busy;        /* process that has the lock; 0: none */
    struct tmk_segments table; /* items NULL: it was not made yet */
    uint32_t generation;       /* the recording that knows all of it */
    uint64_t pool_bytes[MAX_DEVICES];
    struct said_reserved {
        uint32_t generation;
        uint64_t bytes;
    } said[MAX_DEVICES]; /* the reserved bytes that were last recorded, for devices of blocks */
} holdings;

static void unlock_table(void)
{
    atomic_store_explicit(&holdings.busy, 0, memory_order_release);
}

static void start_table_over(pid_t self)
{
    tmk_segments_forget(&holdings.table);
    for (int i = 0; i < MAX_DEVICES; i++)
        holdings.pool_bytes[i] = 0;
    tmk_driver_changes_start_over(self);
}

/* False in a child that was forked while another thread had the lock, when there is no memory, and
 * once system calls may kill. */
static bool lock_table(void)
{
    if (tmk_seal_is_closed())
        return false;
    pid_t self = getpid(), holder = 0;
    while (!atomic_compare_exchange_weak_explicit(&holdings.busy, &holder, self,
                                                  memory_order_acquire, memory_order_relaxed)) {
        if (holder && holder != self)
            return false;
        holder = 0;
        sched_yield();
    }
    if (!holdings.table.items && tmk_segments_init(&holdings.table, MAX_HELD) < 0) {
        unlock_table();
        return false;
    }
    if (!tmk_driver_changes_are_of(self))
        start_table_over(self);
    return true;
}

/* ---- turns ---- */

/* What takes the loader's lock, or waits for the recorder to be armed, is done before our lock is
 * taken: a constructor may call the driver while the loader is locked, and would wait for us. */
struct table_turn {
    struct tmk_lane *lane; /* NULL: nothing is recorded */
    uint32_t stack;        /* of an item that begins */
    uint64_t stream;       /* of a block that begins, as an id */
};

static uint16_t device_of_item(const struct tmk_driver_segment *item)
{
    return tmk_cuda_device(item->device);
}

static void put_segment(struct tmk_lane *lane, const struct tmk_driver_segment *item,
                        uint32_t stack)
{
    tmk_lane_put(lane, TMK_KIND_SEGMENT, device_of_item(item), stack, item->address,
                 item->size_bytes | (uint64_t)item->kind << TMK_SIZE_BITS);
}

/* Record what is there already, without time and stack, which nobody knows. */
static void put_all_segments(struct tmk_lane *lane)
{
    if (holdings.generation == lane->generation)
        return;
    holdings.generation = lane->generation;
    for (uint32_t i = 0; i < holdings.table.n; i++)
        if (!holdings.table.items[i].is_block)
            put_segment(lane, &holdings.table.items[i], 0);
}

static bool finish_table_turn(struct table_turn *t)
{
    if (lock_table()) {
        if (t->lane)
            put_all_segments(t->lane);
        return true;
    }
    if (t->lane)
        tmk_lane_leave(t->lane);
    return false;
}

/* Take a turn to end items, or to look. */
static bool take_table_turn(struct table_turn *t)
{
    *t = (struct table_turn){.lane = tmk_lane_enter()};
    return finish_table_turn(t);
}

/* Take a turn to begin an item like this. */
static bool take_table_turn_for(struct table_turn *t, const struct tmk_driver_segment *item)
{
    *t = (struct table_turn){.lane = tmk_lane_enter()};
    if (t->lane && item->is_block) {
        t->stack = tmk_parts.block_stack(t->lane);
        t->stream = item->stream > TMK_CU_LAST_DEFAULT_STREAM
                        ? tmk_intern_stream(t->lane, device_of_item(item), item->stream)
                        : 0;
    } else if (t->lane) {
        t->stack = tmk_pystack_native_id(t->lane);
    }
    return finish_table_turn(t);
}

static void end_table_turn(const struct table_turn *t)
{
    unlock_table();
    if (t->lane) {
        tmk_lane_leave(t->lane);
        tmk_device_samples_want();
    }
}

/* ---- events; in a turn ---- */

/* The pools' bytes are what is reserved, unless torch reports that itself. */
static void put_reserved_of_pools(struct tmk_lane *lane, uint16_t number)
{
    uint16_t device = tmk_cuda_device(number);
    if (number >= MAX_DEVICES || tmk_torch_has_said(device))
        return;
    struct said_reserved *said = &holdings.said[number];
    uint64_t bytes = holdings.pool_bytes[number];
    if (said->generation == lane->generation && said->bytes == bytes)
        return;
    *said = (struct said_reserved){.generation = lane->generation, .bytes = bytes};
    tmk_lane_put(lane, TMK_KIND_RESERVED, device, 0, bytes, 0);
}

static void record_item_begin(const struct table_turn *t, struct tmk_driver_segment *item)
{
    if (!t->lane)
        return;
    if (!item->is_block) {
        put_segment(t->lane, item, t->stack);
        return;
    }
    item->said_in = t->lane->generation;
    tmk_lane_put(t->lane, TMK_KIND_ALLOC, device_of_item(item), t->stack, item->address,
                 item->size_bytes | t->stream << TMK_SIZE_BITS);
    put_reserved_of_pools(t->lane, item->device);
}

/* A recording does not know blocks from before it began. */
static void record_item_end(const struct table_turn *t, const struct tmk_driver_segment *item)
{
    if (!t->lane || (item->is_block && item->said_in != t->lane->generation))
        return;
    if (!item->is_block) {
        tmk_lane_put(t->lane, TMK_KIND_SEGMENT_END, device_of_item(item), 0, item->address,
                     (uint64_t)item->kind << TMK_SIZE_BITS);
        return;
    }
    tmk_lane_put(t->lane, TMK_KIND_FREE, device_of_item(item), 0, item->address, 0);
    put_reserved_of_pools(t->lane, item->device);
}

/* An item that is there already, with the same size and owner, was noted by a call of the driver's
 * inside this one. An item without room is not recorded, because its end would not be either. */
static void begin_item(const struct table_turn *t, const struct tmk_driver_segment *new_item)
{
    struct tmk_driver_segment item = *new_item;
    struct tmk_driver_segment *old = tmk_segments_find(&holdings.table, item.kind, item.address);
    if (old && old->size_bytes == item.size_bytes && old->owner == item.owner) {
        old->n_refs += item.kind == TMK_SEGMENT_IPC; /* opened again: the same address */
        return;
    }
    if (!old && holdings.table.n == holdings.table.max) {
        if (t->lane)
            tmk_lane_count_drop();
        return;
    }
    record_item_begin(t, &item);
    tmk_segments_begin(&holdings.table, &item);
    if (item.device < MAX_DEVICES)
        tmk_driver_changes_set_device(item.device, true);
    tmk_driver_changes_count();
}

static bool end_item(const struct table_turn *t, unsigned kind, uint64_t address,
                     struct tmk_driver_segment *ret)
{
    struct tmk_driver_segment *item = tmk_segments_find(&holdings.table, kind, address);
    if (!item)
        return false;
    if (kind == TMK_SEGMENT_IPC && item->n_refs > 0) {
        item->n_refs--;
        return false;
    }
    tmk_segments_end(&holdings.table, kind, address, ret);
    tmk_driver_changes_count();
    record_item_end(t, ret);
    return true;
}

static struct tmk_driver_segment *find_physical(uint64_t handle)
{
    return tmk_segments_find(&holdings.table, TMK_SEGMENT_PHYSICAL, handle);
}

static void end_if_unheld(const struct table_turn *t, const struct tmk_driver_segment *item)
{
    struct tmk_driver_segment gone;
    if (item->n_refs == 0 && item->n_mappings == 0)
        end_item(t, TMK_SEGMENT_PHYSICAL, item->address, &gone);
}

/* ---- what the driver's calls mean ---- */

void tmk_driver_table_begin(const struct tmk_driver_segment *item)
{
    struct table_turn t;
    if (!take_table_turn_for(&t, item))
        return;
    begin_item(&t, item);
    end_table_turn(&t);
}

static bool end_first_of_kinds(const uint8_t *kinds, size_t n, uint64_t address,
                               struct tmk_driver_segment *ret)
{
    struct table_turn t;
    bool was_there = false;
    if (!take_table_turn(&t))
        return false;
    for (size_t i = 0; i < n && !was_there; i++)
        was_there = end_item(&t, kinds[i], address, ret);
    end_table_turn(&t);
    return was_there;
}

bool tmk_driver_table_end(unsigned kind, uint64_t address, struct tmk_driver_segment *ret)
{
    return end_first_of_kinds(&(uint8_t){(uint8_t)kind}, 1, address, ret);
}

bool tmk_driver_table_end_pointer(uint64_t address, struct tmk_driver_segment *ret)
{
    static const uint8_t kinds[] = {TMK_SEGMENT_DEVICE, TMK_SEGMENT_ASYNC, TMK_SEGMENT_MANAGED};
    return end_first_of_kinds(kinds, sizeof kinds, address, ret);
}

void tmk_driver_table_retain(uint64_t handle)
{
    if (!lock_table())
        return;
    struct tmk_driver_segment *item = find_physical(handle);
    if (item)
        item->n_refs++;
    unlock_table();
}

/* If it has no owner any more, the driver will fail. */
void tmk_driver_table_release(uint64_t handle)
{
    struct table_turn t;
    if (!take_table_turn(&t))
        return;
    struct tmk_driver_segment *item = find_physical(handle);
    if (item && item->n_refs > 0) {
        item->n_refs--;
        end_if_unheld(&t, item);
    }
    end_table_turn(&t);
}

void tmk_driver_table_map(const struct tmk_driver_segment *mapping)
{
    struct table_turn t;
    if (!take_table_turn_for(&t, mapping))
        return;
    struct tmk_driver_segment *item = find_physical(mapping->owner);
    if (item)
        item->n_mappings++;
    begin_item(&t, mapping);
    end_table_turn(&t);
}

int tmk_driver_table_device(unsigned kind, uint64_t handle)
{
    if (!lock_table())
        return -1;
    const struct tmk_driver_segment *item = tmk_segments_find(&holdings.table, kind, handle);
    int device = item ? item->device : -1;
    unlock_table();
    return device;
}

static bool end_mapping(const struct table_turn *t, uint64_t address, uint64_t *ret_size_bytes)
{
    struct tmk_driver_segment mapping;
    if (!end_item(t, TMK_SEGMENT_MAPPING, address, &mapping))
        return false;
    struct tmk_driver_segment *item = find_physical(mapping.owner);
    if (item && item->n_mappings > 0) {
        item->n_mappings--;
        end_if_unheld(t, item);
    }
    *ret_size_bytes = mapping.size_bytes;
    return true;
}

/* Mostly there is one mapping, or one directly behind the other; where there are holes all items
 * are looked at. */
void tmk_driver_table_unmap(uint64_t address, uint64_t size_bytes)
{
    uint64_t at = address, stop = address + size_bytes, n = 0;
    struct table_turn t;
    if (!take_table_turn(&t))
        return;
    while (at < stop && end_mapping(&t, at, &n))
        at += n;
    for (uint32_t i = 0; at < stop && i < holdings.table.n;) {
        const struct tmk_driver_segment *item = &holdings.table.items[i];
        bool is_in =
            item->kind == TMK_SEGMENT_MAPPING && item->address >= at && item->address < stop;
        if (!is_in || !end_mapping(&t, item->address, &n))
            i++; /* otherwise another item is in its place now */
    }
    end_table_turn(&t);
}

/* ---- pools ---- */

static uint64_t pool_size(uint64_t pool)
{
    const struct tmk_driver_segment *known =
        tmk_segments_find(&holdings.table, TMK_SEGMENT_POOL, pool);
    return known ? known->size_bytes : 0;
}

static void end_pool_bytes(const struct table_turn *t, uint64_t pool)
{
    struct tmk_driver_segment gone;
    if (end_item(t, TMK_SEGMENT_POOL, pool, &gone) && gone.device < MAX_DEVICES)
        holdings.pool_bytes[gone.device] -= gone.size_bytes;
}

static void resize_pool(const struct table_turn *t, const struct tmk_driver_segment *pool)
{
    end_pool_bytes(t, pool->address);
    if (pool->device < MAX_DEVICES)
        holdings.pool_bytes[pool->device] += pool->size_bytes;
    if (pool->size_bytes)
        begin_item(t, pool);
    if (t->lane && pool->device < MAX_DEVICES &&
        holdings.said[pool->device].generation == t->lane->generation)
        put_reserved_of_pools(t->lane, pool->device);
}

/* Mostly nothing has changed: that costs no stack. */
void tmk_driver_table_pool(uint64_t pool, uint16_t device, uint64_t size_bytes)
{
    struct tmk_driver_segment item = {
        .address = pool, .size_bytes = size_bytes, .device = device, .kind = TMK_SEGMENT_POOL};
    struct table_turn t;
    if (!lock_table())
        return;
    bool is_same = pool_size(pool) == size_bytes;
    unlock_table();
    if (is_same || !take_table_turn_for(&t, &item))
        return;
    if (pool_size(pool) != size_bytes)
        resize_pool(&t, &item);
    end_table_turn(&t);
}

void tmk_driver_table_end_pool(uint64_t pool)
{
    struct table_turn t;
    if (!take_table_turn(&t))
        return;
    end_pool_bytes(&t, pool);
    for (uint32_t i = 0; i < holdings.table.n; i++)
        if (holdings.table.items[i].kind == TMK_SEGMENT_ASYNC &&
            holdings.table.items[i].owner == pool)
            holdings.table.items[i].owner = 0;
    end_table_turn(&t);
}

/* ---- contexts ---- */

static void end_items(const struct table_turn *t,
                      bool (*is_in)(const struct tmk_driver_segment *item, uint64_t what),
                      uint64_t what)
{
    for (uint32_t i = 0; i < holdings.table.n;) {
        struct tmk_driver_segment gone;
        const struct tmk_driver_segment *item = &holdings.table.items[i];
        if (!is_in(item, what) || !end_item(t, item->kind, item->address, &gone))
            i++;
        else if (gone.kind == TMK_SEGMENT_POOL && gone.device < MAX_DEVICES)
            holdings.pool_bytes[gone.device] -= gone.size_bytes;
    }
}

static bool is_of_context(const struct tmk_driver_segment *item, uint64_t context)
{
    bool has_context = item->kind != TMK_SEGMENT_MAPPING && item->kind != TMK_SEGMENT_ASYNC;
    return has_context && item->owner == context;
}

static bool is_of_pools(const struct tmk_driver_segment *item, uint64_t device)
{
    return item->device == device &&
           (item->kind == TMK_SEGMENT_POOL || item->kind == TMK_SEGMENT_ASYNC);
}

void tmk_driver_table_end_context(uint64_t context)
{
    struct table_turn t;
    if (!context || !take_table_turn(&t))
        return;
    end_items(&t, is_of_context, context);
    end_table_turn(&t);
}

/* Without its primary context the process has nothing on the device that the driver would count as
 * its. */
void tmk_driver_table_end_device(uint16_t device, uint64_t primary)
{
    struct table_turn t;
    if (!take_table_turn(&t))
        return;
    if (primary)
        end_items(&t, is_of_context, primary);
    end_items(&t, is_of_pools, device);
    if (device < MAX_DEVICES)
        tmk_driver_changes_set_device(device, false);
    end_table_turn(&t);
}

/* ---- for tests ---- */

static uint32_t count_mappings(uint64_t handle)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < holdings.table.n; i++)
        n += holdings.table.items[i].kind == TMK_SEGMENT_MAPPING &&
             holdings.table.items[i].owner == handle;
    return n;
}

/* A handle is there while it has an owner or a mapping. It counts those that were made since it is
 * known. */
static bool is_item_valid(const struct tmk_driver_segment *item)
{
    if (tmk_segments_find(&holdings.table, item->kind, item->address) != item)
        return false;
    return item->kind != TMK_SEGMENT_PHYSICAL ||
           (item->n_mappings <= count_mappings(item->address) &&
            item->n_refs + item->n_mappings > 0);
}

static bool are_items_valid(void)
{
    uint64_t pool_bytes[MAX_DEVICES] = {0};
    for (uint32_t i = 0; i < holdings.table.n; i++) {
        const struct tmk_driver_segment *item = &holdings.table.items[i];
        if (!is_item_valid(item))
            return false;
        if (item->kind == TMK_SEGMENT_POOL && item->device < MAX_DEVICES)
            pool_bytes[item->device] += item->size_bytes;
    }
    for (int i = 0; i < MAX_DEVICES; i++)
        if (pool_bytes[i] != holdings.pool_bytes[i])
            return false;
    return holdings.table.n <= holdings.table.max;
}

bool tmk_driver_table_is_valid(void)
{
    if (!lock_table())
        return false;
    bool is_valid = are_items_valid();
    unlock_table();
    return is_valid;
}
