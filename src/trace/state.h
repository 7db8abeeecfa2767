/* SPDX-License-Identifier: MIT */
/* trace/state.h - everything known at one moment of a trace: live blocks, open ranges, step,
 * totals.
 *
 * This is the one place that says what events mean. The packer keeps a state to write contexts and
 * checkpoints, the merger of a dead process's ring rebuilds one, and the model replays through one;
 * all three call the same functions in the same order, so they agree by construction.
 *
 * A block lives in an entry that is found by (device, address). Finding costs a hash look-up;
 * applying an event to an entry costs none, so a reader that has one entry per address of a chunk
 * looks each address up once per chunk instead of once per event.
 *
 * It uses no malloc, but regions with a bound given at init. In the recorder the bound is small;
 * blocks beyond it are counted as untracked and the figures say so. */
#ifndef TMK_TRACE_STATE_H
#define TMK_TRACE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"
#include "base/region.h"
#include "trace/segments.h"

enum { TMK_CONTEXT_BITS = 23 };

/* The stage that the name of a stage range stands for. */
enum tmk_stage {
    TMK_STAGE_NONE,  /* no stage */
    TMK_STAGE_OTHER, /* a name of the user's own */
    TMK_STAGE_FORWARD,
    TMK_STAGE_BACKWARD,
    TMK_STAGE_OPTIMIZER,
    TMK_STAGE_EVAL,
    TMK_STAGE_DATA,
    TMK_STAGE_SETUP, /* what comes before training: model_load, wrap and so on */
    TMK_N_STAGES,
};

/* The stage of a stage range's name; OTHER for names that tidemark does not know. */
enum tmk_stage tmk_stage_of(const char *name);

struct tmk_block { /* an entry: a live block, or the place where one was */
    uint64_t address;
    uint64_t size_bytes;
    uint64_t alloc_ns;
    uint64_t serial; /* n-th allocation of the trace, from 1; 0: born before the trace knew it */
    int64_t step;    /* TMK_NO_STEP before the first */
    uint32_t stack;
    uint32_t thread;
    uint32_t name;                       /* string id, 0: none */
    uint32_t row;                        /* the model's: where the block's row is */
    uint32_t context : TMK_CONTEXT_BITS; /* index of tmk_context, 0: none */
    uint32_t live : 1;
    uint32_t category : 8;
    uint16_t device;
    uint16_t stream; /* number of a definition, 0: the device's default one */
};
_Static_assert(sizeof(struct tmk_block) == 64,
               "a cache line: replaying is mostly waiting for these");

/* The fields that an allocation adds to a block. */
struct tmk_shape {
    uint64_t size_bytes;
    uint64_t requested_bytes; /* before the allocator rounded it up; 0: not known */
    uint32_t stack;
    uint16_t stream;
};

/* A path of open ranges. Contexts form a tree: each has its parent, and the innermost module and
 * stage are copied down so that a block finds them at once. */
struct tmk_context {
    uint32_t parent;
    uint32_t name;      /* string id */
    uint32_t module;    /* context of the innermost module range, 0: none */
    uint32_t stage;     /* context of the innermost stage range, 0: none */
    uint8_t kind;       /* enum tidemark_range */
    uint8_t stage_kind; /* enum tmk_stage of `stage`; NONE without one */
};

/* One step on one device, as far as it has gone. */
struct tmk_step_row {
    uint64_t ordinal;
    int64_t step; /* TMK_NO_STEP: before the first */
    bool open;    /* the step had not ended */
    uint16_t device;
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t peak_bytes;
    uint64_t peak_ns;
    uint64_t end_bytes;
    uint64_t n_allocs;
    uint64_t n_frees;
    uint64_t alloc_bytes;
    uint64_t free_bytes;
    bool has_reserved; /* else the next two are not known */
    uint64_t peak_reserved_bytes;
    uint64_t end_reserved_bytes;
};

struct tmk_device_use {
    uint16_t device;
    bool has_reserved; /* else the next two are not known */
    uint64_t reserved_bytes;
    uint64_t max_reserved_bytes; /* of all time */
    uint64_t allocated_bytes;
    uint64_t max_bytes; /* of all time */
    struct tmk_step_row row;
};

enum { TMK_MAX_DEVICES = 64 };

struct tmk_state_limits {
    uint32_t max_blocks; /* entries, live and recently freed */
    uint32_t max_contexts;
    uint32_t max_ranges; /* open at once */
    uint32_t max_threads;
    uint32_t max_segments;
};

/* The bounds for the recorder (about 26 MiB when all is used) and for tidemark's own processes. */
extern const struct tmk_state_limits tmk_state_limits_recorder;
extern const struct tmk_state_limits tmk_state_limits_tool;

struct tmk_open_range { /* of one thread, innermost first */
    uint64_t start_ns;
    uint32_t context;
    uint32_t outer; /* index + 1 of the range around it, 0: none; also links the free ones */
    uint32_t name;
    uint32_t stage; /* index + 1 of the innermost stage range, itself included; 0: none */
    uint8_t kind;
    bool is_backward; /* it is a stage "backward" */
    bool in_backward; /* it or one around it is */
};

enum { TMK_MAX_STAGE_NAMES = 32 };

struct tmk_stage_name {
    uint32_t name;  /* string id */
    uint32_t stage; /* enum tmk_stage */
};

struct tmk_state {
    /* Entries 1..n_entries; 0 is "none". */
    struct tmk_block *entries;
    uint64_t *requested; /* by entry; see tmk_state_requested() */
    bool has_requested;  /* else none is known, and the array is not touched */
    uint32_t n_entries;
    uint32_t n_live;
    struct tmk_index entry_index; /* by device and address */

    struct tmk_context *contexts; /* 1..n_contexts */
    uint32_t n_contexts;
    struct tmk_index context_index; /* by parent, kind and name */

    uint32_t *thread_top; /* by thread: index + 1 into ranges, 0: nothing open */
    uint32_t n_threads;   /* threads seen have smaller ids */
    struct tmk_open_range *ranges;
    uint32_t n_ranges;
    uint32_t free_range;

    struct tmk_stage_name stage_names[TMK_MAX_STAGE_NAMES];
    uint32_t n_stage_names;
    bool knows_stages;          /* else blocks are not given categories by themselves */
    uint32_t n_backward;        /* open ranges that are a stage "backward", of all threads */
    uint64_t backward_start_ns; /* when the first of them opened */

    struct tmk_device_use devices[TMK_MAX_DEVICES];
    uint32_t n_devices;

    int64_t step;
    int64_t tail_step; /* this step counts as a part of the one before; TMK_NO_STEP: none does */
    uint64_t step_start_ns;
    uint64_t n_step_module_events; /* module ranges opened or closed in this step */

    uint64_t now_ns; /* time of the last event */
    uint64_t n_events;
    uint64_t n_allocs;
    uint64_t n_frees;
    uint64_t n_dropped;
    uint64_t n_replaced;     /* allocations at an address that was live */
    uint64_t n_unknown_free; /* frees of an address that was not */
    uint64_t n_untracked;    /* blocks without an entry, or on a device without figures */
    uint64_t n_outside;   /* blocks alive now that have no entry: untracked ones, and those that a
                             checkpoint had no room for */
    uint64_t n_unplaced;  /* ranges that found no room; their blocks count to the one around */
    uint64_t n_unnamed;   /* as the ring says: names, stacks and streams that found no room */
    bool is_cut;          /* a checkpoint of this state had no room for all live blocks */
    uint64_t n_step_rows; /* ordinal of the last finished row */

    /* Called with each finished step row; may be NULL. */
    void (*on_step_row)(void *arg, const struct tmk_step_row *row);
    void *on_step_row_arg;

    struct tmk_segments segments;

    struct tmk_state_limits limits;
    struct tmk_region regions[7];
};

/* Returns 0 or TMK_ENOMEM. fini takes a zeroed or half-made state. */
int tmk_state_init(struct tmk_state *s, const struct tmk_state_limits *limits);
void tmk_state_fini(struct tmk_state *s);

/* Returns the entry for (device, address), and makes it when there is none. NULL when the bound is
 * reached and compaction found nothing to drop (the alloc that follows counts it). The entry is
 * good until the next compact. */
struct tmk_block *tmk_state_entry(struct tmk_state *s, uint16_t device, uint64_t address);

/* The same, but NULL when there is none. */
struct tmk_block *tmk_state_find(const struct tmk_state *s, uint16_t device, uint64_t address);

static inline uint32_t tmk_state_index(const struct tmk_state *s, const struct tmk_block *b)
{
    return (uint32_t)(b - s->entries);
}

/* The bytes that the program asked for, before the allocator rounded them up to the block's size;
 * 0: not known, as in all traces of tidemark's own recorder. They lie beside the entries, which are
 * full. */
static inline uint64_t tmk_state_requested(const struct tmk_state *s, const struct tmk_block *b)
{
    return s->has_requested ? s->requested[tmk_state_index(s, b)] : 0;
}
void tmk_state_set_requested(struct tmk_state *s, const struct tmk_block *b, uint64_t bytes);

/* Drop dead entries when they have become many. Invalidates all entry pointers and indices; call
 * between chunks. */
void tmk_state_compact(struct tmk_state *s);

/* The same for all dead entries, and give their memory back: for a state that rests for a while. */
void tmk_state_trim(struct tmk_state *s);

/* Tell the state that a string is the name of a stage, since it knows strings by their ids only. A
 * caller that wants categories does so before the first event. */
void tmk_state_learn_stage(struct tmk_state *s, uint32_t name, enum tmk_stage stage);

/* The category and the name of a block: from its tags or, without tags, from the stage it was made
 * in and the time of its free (docs/owners.md). A live block gets the category that holds if it
 * lives on; a freed one keeps both in its entry. */
uint8_t tmk_state_category(const struct tmk_state *s, const struct tmk_block *b);
uint32_t tmk_state_name(const struct tmk_state *s, const struct tmk_block *b);
/* A copy of the block with its category and name filled in. */
struct tmk_block tmk_state_settled(const struct tmk_state *s, const struct tmk_block *b);

/* The events. `b` may be NULL (no entry): the totals still move. Time must not decrease; in a
 * damaged trace it does, which breaks nothing here. Before an alloc at an entry that is live,
 * replace() takes the old block off: its free was lost. */
void tmk_state_replace(struct tmk_state *s, struct tmk_block *b);
void tmk_state_alloc(struct tmk_state *s, struct tmk_block *b, uint64_t ns, uint16_t device,
                     uint32_t thread, const struct tmk_shape *shape);
/* Returns true when a live block was freed; the entry keeps its values. `thread` is the one that
 * freed it. */
bool tmk_state_free(struct tmk_state *s, struct tmk_block *b, uint64_t ns, uint16_t device,
                    uint32_t thread);
/* Returns true when there was a live block to tag. "Input" and "kv_cache" are hints: a block that
 * has another category already keeps it, but for an input that turns out to be a cache. */
bool tmk_state_tag(struct tmk_state *s, struct tmk_block *b, uint64_t ns, uint8_t category,
                   uint32_t name);
/* Returns the context now innermost. */
uint32_t tmk_state_push(struct tmk_state *s, uint64_t ns, uint32_t thread, uint8_t kind,
                        uint32_t name);
/* Closes the innermost range of `kind` and all inside it. Returns true and that range in *ret_range
 * (may be NULL); false when none is open. */
bool tmk_state_pop(struct tmk_state *s, uint64_t ns, uint32_t thread, uint8_t kind,
                   struct tmk_open_range *ret_range);
void tmk_state_step(struct tmk_state *s, uint64_t ns, int64_t step);
/* The step that a number of the trace stands for. */
int64_t tmk_state_step_of(const struct tmk_state *s, int64_t step);
/* Sets the bytes that the framework's allocator has reserved on a device from now on. */
void tmk_state_reserved(struct tmk_state *s, uint64_t ns, uint16_t device, uint64_t bytes);
/* Ends all live blocks of the device. A caller that wants to see each of them calls give_up for
 * each live one before. */
void tmk_state_device_end(struct tmk_state *s, uint64_t ns, uint16_t device);
void tmk_state_give_up(struct tmk_state *s, struct tmk_block *b);
/* Begins and ends a segment: memory that the driver gives and takes back. `segment` has the fields
 * of the event: address, size, stack, device and kind. End returns true when there was one, and
 * copies it to *ret_segment (may be NULL). */
void tmk_state_segment(struct tmk_state *s, uint64_t ns, uint32_t thread,
                       const struct tmk_driver_segment *segment);
bool tmk_state_segment_end(struct tmk_state *s, uint64_t ns, unsigned kind, uint64_t address,
                           struct tmk_driver_segment *ret_segment);
/* Applies any other event: only time and counts change. */
void tmk_state_other(struct tmk_state *s, uint64_t ns);

/* The innermost context of a thread, 0 when nothing is open. */
uint32_t tmk_state_thread_context(const struct tmk_state *s, uint32_t thread);
/* Returns the child of `parent` for a range, and makes it when new; `parent` itself when the bound
 * is reached. */
uint32_t tmk_state_context(struct tmk_state *s, uint32_t parent, uint8_t kind, uint32_t name);
/* The same, but 0 when it is new. */
uint32_t tmk_state_find_context(const struct tmk_state *s, uint32_t parent, uint8_t kind,
                                uint32_t name);

/* The device's figures, made when new; NULL beyond TMK_MAX_DEVICES. */
struct tmk_device_use *tmk_state_device(struct tmk_state *s, uint16_t device);
/* The same, but NULL when it is new. */
struct tmk_device_use *tmk_state_find_device(struct tmk_state *s, uint16_t device);
void tmk_device_set_reserved(struct tmk_device_use *d, uint64_t bytes, uint64_t max_bytes);

/* The row of the current step on device i, as of the last event (row.open is set). */
struct tmk_step_row tmk_state_open_row(const struct tmk_state *s, uint32_t i);

/* These restore a state. forget_ranges closes all ranges silently; open_range opens one silently;
 * put makes a block live without counting it. */
void tmk_state_forget_ranges(struct tmk_state *s);
void tmk_state_open_range(struct tmk_state *s, uint32_t thread, uint8_t kind, uint32_t name,
                          uint64_t start_ns);
void tmk_state_forget_blocks(struct tmk_state *s);
void tmk_state_put(struct tmk_state *s, struct tmk_block *b);
void tmk_state_drop(struct tmk_state *s, struct tmk_block *b);
/* Makes a block live when only its size is known: it was allocated before `now_ns`. */
void tmk_state_put_brief(struct tmk_state *s, struct tmk_block *b, uint64_t size_bytes,
                         uint64_t now_ns);

/* The number of live blocks without details: the state does not know when and where they were
 * allocated. */
uint64_t tmk_state_n_without_details(const struct tmk_state *s);

/* The invariants (base/valid.h):
 *   - entries: no more than the bound; `n_live` of them are live; a search for an entry's device
 *     and address finds that entry, and the index, which is valid, has no other numbers; a block's
 *     context exists;
 *   - contexts: a parent comes before its children; the innermost module and stage are the
 *     context itself or the parent's; a search for parent, kind and name finds the context, and
 *     its index, which is valid, has no other numbers;
 *   - ranges: each of `n_ranges` is open on one thread or free; its context is a child of the
 *     context around it, or that context where there was no room; its stage and whether it is in
 *     a backward follow from it and the range around it; `n_backward` and `backward_start_ns` are
 *     those of the open ranges;
 *   - devices: each has figures once, and the open row beside them is its own;
 *   - segments: those of tmk_segments_is_valid(). */
bool tmk_state_is_valid(const struct tmk_state *s);
uint64_t tmk_state_check_cost(const struct tmk_state *s); /* in items */

/* Whether more invariants hold, which a state restored from a file may break, since a file may say
 * anything:
 *   - a device's live blocks add up to its allocated bytes, or to less where blocks have no entry;
 *   - a device's open row has the state's step, and reserved bytes when the device has them;
 *   - bytes do not exceed the step's peak, nor that the peak of all time; so of reserved bytes;
 *   - live blocks were allocated by now, and there are not more of them than were counted; the
 *     same holds for segments. */
bool tmk_state_adds_up(const struct tmk_state *s);

#endif
