/* SPDX-License-Identifier: MIT */
/* record/driver/driver_table.h - the table of what this process holds of the driver, and its
 * events.
 *
 * A free names only an address; the table knows what was there, on which device and in which
 * context. A handle of the virtual memory API counts its owners and its mappings: its memory goes
 * with the last of them. The table is kept whether or not anything is recorded, so that a recording
 * that begins later can say what is there already.
 *
 * Calls of the driver take microseconds and are few. So there is one lock. Events are written under
 * it, so that their order is the table's; nothing else that could wait is done under it. A child
 * that was forked while it was locked has no driver to call. */
#ifndef TMK_RECORD_DRIVER_TABLE_H
#define TMK_RECORD_DRIVER_TABLE_H

#include "trace/segments.h"

/* Add an item; it is recorded with the calling thread's stack. */
void tmk_driver_table_begin(const struct tmk_driver_segment *item);

/* Take an item out and record it as gone, before the driver is called. True: *ret is what it was.
 * If the driver fails, tmk_driver_table_begin() brings it back. */
bool tmk_driver_table_end(unsigned kind, uint64_t address, struct tmk_driver_segment *ret);
/* The same for a pointer that cuMemFree can free: device, async or managed memory. */
bool tmk_driver_table_end_pointer(uint64_t address, struct tmk_driver_segment *ret);

/* A handle gets one more owner, loses one, or gets one more mapping; the last one ends it. */
void tmk_driver_table_retain(uint64_t handle);
void tmk_driver_table_release(uint64_t handle);
void tmk_driver_table_map(const struct tmk_driver_segment *mapping);
/* End the mappings that begin in this range of addresses; each releases its handle. */
void tmk_driver_table_unmap(uint64_t address, uint64_t size_bytes);
/* The device of a handle or of a pool; -1: not known. */
int tmk_driver_table_device(unsigned kind, uint64_t handle);

/* Set the size of a pool; nothing is recorded when it is the same as before. */
void tmk_driver_table_pool(uint64_t pool, uint16_t device, uint64_t size_bytes);
/* End a pool that is about to be destroyed. Memory still allocated from it has no pool afterwards.
 * */
void tmk_driver_table_end_pool(uint64_t pool);

/* Check the table's invariant, in tests, while no other thread calls the driver: sums and counts
 * agree with the items. */
bool tmk_driver_table_is_valid(void);

/* End everything that goes with a context; and with a device's primary context its pools too. */
void tmk_driver_table_end_context(uint64_t context);
void tmk_driver_table_end_device(uint16_t device, uint64_t primary);

#endif
