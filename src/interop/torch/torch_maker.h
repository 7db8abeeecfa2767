/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_maker.h - a trace in the making, shared by the files of the import and
 * private to them; torch_import.h is for others. All functions return 0 or an error that
 * *maker.err explains. */
#ifndef TMK_INTEROP_TORCH_TORCH_MAKER_H
#define TMK_INTEROP_TORCH_TORCH_MAKER_H

#include "interop/torch/torch_history.h"
#include "interop/torch/torch_snapshot.h"
#include "trace/packer.h"
#include "trace/writer.h"

struct tmk_import_track {
    struct tmk_import_history history;
    struct tmk_spool *events; /* NULL: none */
    uint64_t odd_before;      /* the layout's count of odd events before the first one */
    uint64_t reserved_bytes;
    uint32_t thread;
    uint16_t device; /* numbered as in a trace */
    bool has_next;
    bool is_completing; /* the next event completes the free before it */
    struct tmk_import_event next;
};

/* The cost of a segment's record, as the limit of work counts it. */
enum { TMK_IMPORT_RECORD_STEPS = 8 };

struct tmk_import_maker {
    struct tmk_import_snapshot *s;
    struct tmk_writer writer;
    struct tmk_packer *packer;
    struct tmk_import_track *tracks;
    const struct tmk_import_segment **by_address; /* the snapshot's segments */
    uint64_t next_annotation;
    uint64_t now_ns;
    uint32_t c10_frame;
    uint32_t *driver_stacks; /* by stack: the same below torch's allocator; 0: not made */
    uint64_t driver_stack_room;
    void (*tell)(void *arg, uint32_t done, uint32_t total);
    void *tell_arg;
    uint64_t n_done;
    bool is_made; /* the file was made */
    struct tmk_error *err;
};

/* Write one record now. */
int tmk_import_put(struct tmk_import_maker *m, struct tmk_input *in);

/* Define the snapshot's strings, frames, stacks and streams, and torch's allocator as a module. */
int tmk_import_define(struct tmk_import_maker *m);
/* Define a string that the snapshot may not have; 0 after an error. */
uint32_t tmk_import_own_string(struct tmk_import_maker *m, const char *text);
/* The stack with torch's allocator, which called the driver, on top; 0 after an error. */
uint32_t tmk_import_driver_stack(struct tmk_import_maker *m, uint32_t stack);

/* Write one event of the snapshot. */
int tmk_import_apply(struct tmk_import_maker *m, struct tmk_import_track *t,
                     const struct tmk_import_event *ev);
/* Write parts of events, for what was there before the first. */
int tmk_import_put_segment(struct tmk_import_maker *m, struct tmk_import_track *t,
                           const struct tmk_import_span *span, uint32_t stack, bool is_end);
int tmk_import_put_reserved(struct tmk_import_maker *m, struct tmk_import_track *t);
int tmk_import_put_held(struct tmk_import_maker *m, const struct tmk_import_track *t,
                        uint64_t address, uint8_t kind);
int tmk_import_put_mark(struct tmk_import_maker *m, uint32_t thread, const char *event,
                        const char *info);

#endif
