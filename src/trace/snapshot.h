/* SPDX-License-Identifier: MIT */
/* trace/snapshot.h - a state as bytes: the context of an events chunk, step rows, checkpoints.
 *
 * Writing and reading stand side by side so that they cannot drift apart. All readers take hostile
 * bytes: they return TMK_EDAMAGED and leave a state that is valid, if incomplete. */
#ifndef TMK_TRACE_SNAPSHOT_H
#define TMK_TRACE_SNAPSHOT_H

#include "base/bytes.h"
#include "trace/state.h"

/* Write section 2 of an events chunk that starts at `start_ns`. */
void tmk_context_write(struct tmk_sink *out, const struct tmk_state *s, uint64_t start_ns);

/* The context for a reader that has no state. */
struct tmk_context_device {
    uint16_t device;
    bool has_reserved; /* set by tmk_reserved_read() */
    uint64_t allocated_bytes;
    uint64_t max_bytes;
    uint64_t reserved_bytes;
    uint64_t max_reserved_bytes;
};
struct tmk_context_head {
    uint32_t n_devices;
    struct tmk_context_device devices[TMK_MAX_DEVICES];
    uint64_t step_start_ns;
    uint64_t n_step_module_events;
};

/* Read the devices and the step; *in then stands at the threads with open ranges. */
int tmk_context_read_head(struct tmk_view *in, uint64_t start_ns, struct tmk_context_head *ret);
/* Read the open ranges, calling back for each, outermost first. */
int tmk_context_read_ranges(struct tmk_view *in, uint64_t start_ns,
                            void (*range)(void *arg, uint32_t thread, uint8_t kind, uint32_t name,
                                          uint64_t start_ns),
                            void *arg);
/* Read both into a state: sets devices' figures, step start and open ranges. */
int tmk_context_restore(struct tmk_view *in, uint64_t start_ns, struct tmk_state *s);

/* Section 7: reserved bytes of the devices that the context lists. */
enum { TMK_RESERVED_BOUND = TMK_MAX_DEVICES * 3 * TMK_VARINT_MAX_BYTES };
void tmk_reserved_write(struct tmk_sink *out, const struct tmk_state *s);
int tmk_reserved_read(struct tmk_view in, struct tmk_context_head *head);
int tmk_reserved_restore(struct tmk_view in, struct tmk_state *s);

void tmk_step_row_write(struct tmk_sink *out, const struct tmk_step_row *row);
/* Read one row. Returns 0 or TMK_EDAMAGED. */
int tmk_step_row_read(struct tmk_view *in, struct tmk_step_row *ret);

/* Section 32: totals. An events chunk has it too, so that reading can begin at any of them. */
enum { TMK_TOTALS_BOUND = 16 * TMK_VARINT_MAX_BYTES };
void tmk_totals_write(struct tmk_sink *out, const struct tmk_state *s);
struct tmk_written_live { /* what the totals say of live blocks */
    bool is_known;        /* false: written before they said it */
    uint64_t n;           /* all */
    uint64_t n_outside;   /* of these, blocks that whoever wrote this had no entry for himself */
};
int tmk_totals_read(struct tmk_view in, struct tmk_state *s, struct tmk_written_live *ret_live);
/* Count live blocks that were not put as outside, after all known ones were put. */
void tmk_state_settle_outside(struct tmk_state *s, const struct tmk_written_live *live);

/* Section 33: the rows of the current step, one a device. */
enum { TMK_ROWS_BOUND = TMK_MAX_DEVICES * 16 * TMK_VARINT_MAX_BYTES };
void tmk_open_rows_write(struct tmk_sink *out, const struct tmk_state *s);
void tmk_open_rows_restore(struct tmk_view in, struct tmk_state *s);

/* The bytes that a checkpoint of this state takes at most. */
size_t tmk_checkpoint_bound(const struct tmk_state *s);
/* Write the payload, in at most `max_bytes`; `scratch` must have room for tmk_checkpoint_bound
 * bytes like the sink. Where not all live blocks fit, the largest have their details, others their
 * size only, and the smallest are left out: *ret_n_detailed (may be NULL) says how many have
 * details. Returns false, and writes nothing, when not even the rest fits. */
bool tmk_checkpoint_write(struct tmk_sink *out, const struct tmk_state *s, uint64_t now_ns,
                          void *scratch, size_t max_bytes, uint32_t *ret_n_detailed);
/* Fill a state from a checkpoint's payload: everything but `step`, which the chunk header has. */
int tmk_checkpoint_restore(struct tmk_view payload, uint64_t now_ns, int64_t step,
                           struct tmk_state *s);

/* Walk the sections of a payload. Returns 1 and the next section, 0 at the end, <0 for damage. Ids
 * ascend. */
int tmk_section_next(struct tmk_view *payload, uint64_t *id, struct tmk_view *ret_section);
void tmk_section_write(struct tmk_sink *out, uint64_t id, const struct tmk_sink *content);

#endif
