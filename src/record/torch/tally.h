/* SPDX-License-Identifier: MIT */
/* record/torch/tally.h - how much torch has allocated and reserved on a device right now.
 *
 * The trace knows it too, but only after the packer has come by. Who asks here, the Python package
 * many thousand times a second, gets an answer at once, without a lock and without asking torch,
 * whose own statistics take ten microseconds to put together.
 *
 * Of an accelerator torch itself says both figures with each block, under its lock of that device.
 * Of the host it says sizes of blocks that come, not of those that go: so addresses and sizes are
 * kept in a table, of some millions of blocks: of its pages only those are there that were needed.
 * Once there was no room for a block, what the host has allocated is not known any more, rather
 * than too small. All of it from the moment on that somebody wants to know (tmk_tally_want()):
 * others shall not pay for it. */
#ifndef TMK_RECORD_TALLY_H
#define TMK_RECORD_TALLY_H

#include <stdbool.h>
#include <stdint.h>

struct tmk_tally {
    uint64_t allocated_bytes;
    uint64_t reserved_bytes; /* of the host: as much as is allocated, torch keeps no cache there */
    uint64_t peak_allocated_bytes;
    uint64_t peak_reserved_bytes;
};

/* Torch says it of an accelerator, whose lock it holds. */
void tmk_tally_say(uint16_t device, uint64_t allocated_bytes, uint64_t reserved_bytes);

/* A block of the host's has come, or is about to go. */
void tmk_tally_host_alloc(const void *address, uint64_t size_bytes);
void tmk_tally_host_free(const void *address);

/* Keep figures from now on. False: there is no memory for the table of the host's blocks. */
bool tmk_tally_want(void);

/* False: not known, because torch has said nothing of this device yet, or memory was given or taken
 * back since, of which torch says nothing until its next block, or could be with nobody seeing it
 * (driver_table.h, runtime_calls.h); of the host, because there was no room for one of its blocks.
 */
bool tmk_tally_read(uint16_t device, struct tmk_tally *ret);

/* Who does not get to know asks torch, and may tell the answer: with what tmk_tally_ask() said
 * before, it is what tmk_tally_read() knows until something changes. Peaks count in any case. */
uint64_t tmk_tally_ask(uint16_t device);
void tmk_tally_tell(uint16_t device, uint64_t asked, const struct tmk_tally *answer);

/* The same with peaks since the window began, or since the process did where none has. A window
 * begins now, for everybody: one measurement at a time. Peaks of tmk_tally_read() go on over it. */
bool tmk_tally_read_window(uint16_t device, struct tmk_tally *ret);
void tmk_tally_begin_window(uint16_t device);

#endif
