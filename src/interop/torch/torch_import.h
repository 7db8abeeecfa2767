/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_import.h - converts a torch snapshot into a trace of one process: the
 * events in order of time, after what was there before them (torch_history.h), with blocks as
 * large as they really were (torch_layout.h).
 *
 *   alloc                        ALLOC with the block's size, the stack, the stream, what was
 *                                requested; user_metadata and our own categories as a TAG
 *   free_requested               FREE: allocated bytes fall. If other things happen before
 *                                free_completed, HELD now and RELEASED then
 *   segment_alloc, _free,        SEGMENT and SEGMENT_END, and RESERVED. Expandable memory that lies
 *   segment_map, _unmap          together is one segment, begun anew when it grows or shrinks
 *   oom                          OOM with what was asked for and what the device had free
 *   annotations                  ranges of kind user, on a thread for each device
 *   snapshot, annotate           MARK; TAG, or MARK without an address */
#ifndef TMK_INTEROP_TORCH_TORCH_IMPORT_H
#define TMK_INTEROP_TORCH_TORCH_IMPORT_H

#include "interop/torch/torch_snapshot.h"

struct tmk_import_summary {
    uint64_t n_events;   /* of the snapshot */
    uint32_t n_devices;  /* devices that occur */
    uint64_t n_seeds;    /* blocks that were there before the first event */
    uint64_t seed_bytes; /* of those that were allocated */
    uint64_t n_odd;      /* events that did not fit what came before */
    uint64_t n_live;     /* blocks of the final segments */
    uint64_t n_wrong;    /* of these, those that came out with another size */
    uint64_t end_bytes;  /* allocated at the end, on all devices */
    uint64_t duration_us;
    struct {
        uint16_t device; /* numbered as in a trace */
        uint64_t peak_bytes, peak_reserved_bytes;
    } devices[TMK_IMPORT_MAX_DEVICES];
};

/* Write the trace `path`; `source` is the snapshot's name, for the header. On failure the file is
 * removed. Returns 0, TMK_EIO or TMK_ENOMEM. */
int tmk_import_write(struct tmk_import_snapshot *s, const char *path, const char *source,
                     void (*tell)(void *arg, uint32_t done, uint32_t total), void *arg,
                     struct tmk_import_summary *ret_summary, struct tmk_error *err);

#endif
