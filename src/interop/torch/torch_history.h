/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_history.h - what a device looked like before the first event of a snapshot,
 * found from its end.
 *
 * The ring of events may have lost its beginning. What the final segments have and no event made
 * was there already; so was what an event takes away that none had made. Segments are followed
 * backwards from the end, blocks are found by the first thing that happens at their address. The
 * sizes of those that are alive at the end are known; of others they follow from where the next
 * block lies, since torch cuts off what is large enough to be of use. */
#ifndef TMK_INTEROP_TORCH_TORCH_HISTORY_H
#define TMK_INTEROP_TORCH_TORCH_HISTORY_H

#include "base/index.h"
#include "interop/torch/torch_layout.h"
#include "interop/torch/torch_snapshot.h"

struct tmk_import_seed { /* a block that was there */
    uint64_t address;
    uint64_t size_bytes; /* 0: not known, until the layout tells */
    uint64_t requested_bytes;
    uint32_t stack;
    uint16_t stream;
    bool is_pending; /* freed before, and waiting for another stream */
};

struct tmk_import_history {
    struct tmk_import_seed *seeds; /* by address */
    uint64_t n_seeds, seed_room;
    struct tmk_import_layout *layout; /* as it was: segments, and the seeds in them */
    struct tmk_import_place *places;
    uint64_t n_places, place_room;
    struct tmk_index place_index; /* of number + 1, by address */
    const struct tmk_import_snapshot *snapshot;
    uint16_t device;
};

/* Go through the device's events once. 0, TMK_EIO, TMK_ENOMEM, or TMK_EFULL: that is more work than
 * the snapshot's limit. fini takes a zeroed one. */
int tmk_import_history_init(struct tmk_import_history *h, struct tmk_import_snapshot *s,
                            uint16_t device, const struct tmk_alloc_conf *conf,
                            struct tmk_error *err);
void tmk_import_history_fini(struct tmk_import_history *h);

/* To be called for each ALLOC in order: the size of the block if this one is alive at the end, so
 * that the snapshot knows it; else 0. */
uint64_t tmk_import_history_real_bytes(struct tmk_import_history *h, uint64_t address);

#endif
