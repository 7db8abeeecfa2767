/* SPDX-License-Identifier: MIT */
/* record/driver/driver_table.h - what this process holds of the driver, and the events that say so.
 *
 * A free names an address only; what was there, on which device and in which context, is known from
 * here. A VMM handle counts its owners and its mappings: its memory goes with the last of them. The
 * table is kept whether or not anything is recorded, so that a recording that begins later can say
 * what is there already.
 *
 * Calls of the driver take microseconds, and they are few: there is one lock, under which the
 * events are written too, so that their order is the table's, and nothing else that could wait. A
 * child that was forked with it locked has no driver to call. */
#ifndef TMK_RECORD_DRIVER_TABLE_H
#define TMK_RECORD_DRIVER_TABLE_H

#include "trace/segments.h"

/* It is there now: recorded, with the calling thread's stack. */
void tmk_driver_table_begin(const struct tmk_driver_segment *item);

/* It is about to go, recorded as gone: true, and *ret is what it was. When the driver refuses,
 * tmk_driver_table_begin() brings it back. */
bool tmk_driver_table_end(unsigned kind, uint64_t address, struct tmk_driver_segment *ret);
/* What a pointer that can be freed by cuMemFree leads to: device, async or managed. */
bool tmk_driver_table_end_pointer(uint64_t address, struct tmk_driver_segment *ret);

/* A handle has one owner more, or less, or a mapping more; the last one ends it. */
void tmk_driver_table_retain(uint64_t handle);
void tmk_driver_table_release(uint64_t handle);
void tmk_driver_table_map(const struct tmk_driver_segment *mapping);
/* The mappings that begin in these addresses go, and each releases its handle. */
void tmk_driver_table_unmap(uint64_t address, uint64_t size_bytes);
/* The device of a handle or of a pool; -1: it is not known. */
int tmk_driver_table_device(unsigned kind, uint64_t handle);

/* A pool has this many bytes; nothing is recorded when it had as many before. */
void tmk_driver_table_pool(uint64_t pool, uint16_t device, uint64_t size_bytes);
/* It is about to be destroyed: what is still allocated from it has no pool that the driver could be
 * asked for. */
void tmk_driver_table_end_pool(uint64_t pool);

/* For tests, while no other thread calls the driver: sums and counts are those of the items. */
bool tmk_driver_table_is_valid(void);

/* All that goes with a context has gone with it; with a device's primary one its pools too. */
void tmk_driver_table_end_context(uint64_t context);
void tmk_driver_table_end_device(uint16_t device, uint64_t primary);

#endif
