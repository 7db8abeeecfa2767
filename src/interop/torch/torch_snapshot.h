/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_snapshot.h - the content of a torch CUDA memory snapshot
 * (torch.cuda.memory._snapshot(), _dump_snapshot()), read from its pickle in one go.
 *
 * A snapshot has the allocator's segments and blocks at the end, and for each device the last
 * events before that, as many as its ring kept. Events go to an unnamed file, 40 bytes each, so
 * that they can be walked forwards as often as needed while memory stays small; everything else
 * is in memory. torch_import.h says what the events mean and what was there before the first.
 *
 * Unknown keys are skipped. Old files have blocks without an address, `history` in place of
 * frames, and `free` for both frees. */
#ifndef TMK_INTEROP_TORCH_TORCH_SNAPSHOT_H
#define TMK_INTEROP_TORCH_TORCH_SNAPSHOT_H

#include "base/error.h"
#include "interop/pickle/work_limit.h"
#include "interop/torch/spool.h"
#include "interop/torch/torch_names.h"

enum tmk_import_action {
    TMK_IMPORT_NO_ACTION, /* an unknown one */
    TMK_IMPORT_ALLOC,
    TMK_IMPORT_FREE, /* in old files: requested and completed at once */
    TMK_IMPORT_FREE_REQUESTED,
    TMK_IMPORT_FREE_COMPLETED,
    TMK_IMPORT_SEGMENT_ALLOC,
    TMK_IMPORT_SEGMENT_FREE,
    TMK_IMPORT_SEGMENT_MAP,
    TMK_IMPORT_SEGMENT_UNMAP,
    TMK_IMPORT_OOM,
    TMK_IMPORT_SNAPSHOT,
    TMK_IMPORT_ANNOTATE,
};

struct tmk_import_event {
    uint64_t address;    /* OOM: bytes that the device had free, 0: not known */
    uint64_t size_bytes; /* for a block: as requested */
    uint64_t time_us;
    uint32_t stack;
    uint32_t name;    /* user_metadata: a string; 0: none */
    uint16_t stream;  /* 0: the default one; else number of tmk_import_stream */
    uint8_t action;   /* enum tmk_import_action */
    uint8_t category; /* from our own exports; 0: unknown */
    uint32_t reserved;
};

enum tmk_import_state { TMK_IMPORT_INACTIVE, TMK_IMPORT_ALLOCATED, TMK_IMPORT_PENDING_FREE };

struct tmk_import_block {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t requested_bytes; /* 0: not known */
    uint32_t stack;
    uint8_t state; /* enum tmk_import_state */
};

struct tmk_import_segment {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t first_block, n_blocks; /* in `blocks` */
    uint32_t stack;
    uint16_t device; /* index */
    uint16_t stream;
    bool is_expandable;
};

struct tmk_import_stream {
    uint64_t handle;
    uint16_t device; /* index */
};

struct tmk_import_annotation { /* the beginning or end of a range of the program */
    uint64_t time_us;
    uint64_t order; /* its position in the file */
    uint32_t name;
    uint16_t device;
    bool is_end;
};

enum { TMK_IMPORT_MAX_DEVICES = 64 };

struct tmk_import_snapshot {
    struct tmk_names names;
    struct tmk_import_segment *segments;
    uint64_t n_segments, segment_room;
    struct tmk_import_block *blocks;
    uint64_t n_blocks, block_room;
    struct tmk_import_stream *streams; /* number - 1 */
    uint64_t n_streams, stream_room;
    struct tmk_import_annotation *annotations; /* in order of time */
    uint64_t n_annotations, annotation_room;
    struct tmk_spool *events[TMK_IMPORT_MAX_DEVICES]; /* tmk_import_event; NULL: none */
    uint32_t n_devices;                               /* devices that occur have smaller numbers */
    uint64_t n_events;                                /* on all devices */
    uint64_t n_unknown;                               /* events with an unknown action */
    uint64_t first_us, last_us; /* of all events and annotations; first > last: there are none */
    char alloc_conf[512];       /* as PYTORCH_CUDA_ALLOC_CONF would say it; "": defaults */
    bool has_settings;
    struct tmk_work_limit work; /* for reading, then for making a trace of it */
};

/* Read `path` ("-": standard input); temporary files go to `folder`. `tell` (may be NULL) hears
 * how far it is. A file that takes far more memory or time than its size suggests ends in
 * TMK_EFULL, unless `no_limits`. 0: fini the snapshot. Other errors are those of tmk_feed_init()
 * and tmk_pickle_read(). */
int tmk_import_snapshot_read(struct tmk_import_snapshot *s, const char *path, const char *folder,
                             bool no_limits, void (*tell)(void *arg, uint32_t done, uint32_t total),
                             void *arg, struct tmk_error *err);
void tmk_import_snapshot_fini(struct tmk_import_snapshot *s);

#endif
