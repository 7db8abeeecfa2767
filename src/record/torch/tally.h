/* SPDX-License-Identifier: MIT */
/* record/torch/tally.h - how much torch has allocated and reserved on a device right now.
 *
 * The trace knows it too, but only after the packer has come by. The Python package asks here, many
 * thousand times a second, and gets an answer at once, without a lock and without asking torch: its
 * own statistics take ten microseconds.
 *
 * For an accelerator, torch says both figures with each block, under its lock of that device. For
 * the host, it says the sizes of new blocks, but not of freed ones. So addresses and sizes are kept
 * in a table of some millions of blocks; its pages use memory when they are needed. After a block
 * has found no room in it, the host's allocated bytes are unknown, rather than too small. Nothing
 * is counted until somebody wants to know (tmk_tally_want()): others do not pay for it. */
#ifndef TMK_RECORD_TALLY_H
#define TMK_RECORD_TALLY_H

#include <stdbool.h>
#include <stdint.h>

struct tmk_tally {
    uint64_t allocated_bytes;
    uint64_t reserved_bytes; /* the host: not known, and as much as allocated here */
    uint64_t peak_allocated_bytes;
    uint64_t peak_reserved_bytes;
};

/* Called with torch's figures of an accelerator, under torch's lock of it. */
void tmk_tally_say(uint16_t device, uint64_t allocated_bytes, uint64_t reserved_bytes);

/* Called when a block of the host has come, and before one goes. */
void tmk_tally_host_alloc(const void *address, uint64_t size_bytes);
void tmk_tally_host_free(const void *address);

/* Keep figures from now on. False: there is no memory for the table of the host's blocks. */
bool tmk_tally_want(void);

/* Read the figures. False: they are not known. For an accelerator, because torch has not reported
 * it yet; because memory was given or taken back since, of which torch says nothing until its next
 * block; or because that could happen unseen (driver_table.h, runtime_calls.h). For the host,
 * because a block found no room in the table. */
bool tmk_tally_read(uint16_t device, struct tmk_tally *ret);

/* A caller that gets no answer asks torch, and may tell that answer here, with what tmk_tally_ask()
 * returned before it asked. tmk_tally_read() then gives it until something changes. Its peaks count
 * in any case. */
uint64_t tmk_tally_ask(uint16_t device);
void tmk_tally_tell(uint16_t device, uint64_t asked, const struct tmk_tally *answer);

/* The most bytes allocated since the window began, or since the process did when no window has
 * begun. False: they are not known. They are known of an accelerator even when its reserved bytes
 * are not, because torch reports what is allocated with each block. A window begins now, for
 * everybody: one measurement at a time. Peaks of tmk_tally_read() go on across windows. */
bool tmk_tally_read_window(uint16_t device, uint64_t *ret_peak_bytes);
void tmk_tally_begin_window(uint16_t device);

#endif
