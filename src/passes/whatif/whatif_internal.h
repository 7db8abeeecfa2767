/* SPDX-License-Identifier: MIT */
/* passes/whatif/whatif_internal.h - the events of a trace as kept for replay: whatif_sweep.c
 * collects them, whatif_replay.c replays them.
 *
 * They are words of 32 bits. A block is a slot, a small number that is used again when it is
 * freed:
 *
 *     ALLOC  slot | ALLOC << 30, stream, bytes low, bytes high
 *     FREE   slot | FREE << 30
 *     GIVE   slot | GIVE << 30: freed, but another stream is not done with it until DONE
 *     OTHER  kind of other | OTHER << 30, and for
 *       DONE   slot, 0
 *       OOM    stream, bytes low, bytes high
 *       EMPTY  need low, need high: all cached memory was given back, outside of an allocation when
 *              `need` is 0; else what was reserved before and what was then asked for, together
 *       STEP   step low, step high
 *       TIME   ns low, ns high: of the next event; one for every few events */
#ifndef TMK_PASSES_WHATIF_WHATIF_INTERNAL_H
#define TMK_PASSES_WHATIF_WHATIF_INTERNAL_H

#include "base/index.h"
#include "model/alloc_conf.h"
#include "model/driver_space.h"
#include "model/holders.h"
#include "passes/whatif/whatif.h"
#include "passes/whatif/whatif_sizes.h"

enum whatif_op { OP_ALLOC, OP_FREE, OP_OTHER, OP_GIVE };
enum whatif_other { OTHER_OOM, OTHER_EMPTY, OTHER_STEP, OTHER_TIME, OTHER_DONE };
enum { OP_SHIFT = 30, OP_TIME_EVERY = 64 };
enum { NO_SLOT = (1u << OP_SHIFT) - 1 };

struct live_block {
    uint64_t address;
    uint32_t slot; /* slot + 1; 0: the entry is empty */
};

/* The size that an allocation may have requested, if that is less than the block it got. Under the
 * recorded settings the block's size is used, where it gives the same block again. */
struct request_guess {
    uint64_t word;
    uint64_t bytes;
};

/* A block that was there before the first event. */
struct seed_block {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t requested_bytes;
    uint32_t slot;
    uint16_t stream;
};

struct tmk_whatif {
    const struct tmk_process *p;
    struct tmk_holders *holders;
    uint16_t device;
    bool failed; /* out of memory in the sweep */
    struct tmk_whatif_recorded recorded;
    struct tmk_alloc_conf conf; /* the recorded settings, as far as known */

    uint32_t *words;
    uint64_t n_words, word_room;
    struct request_guess *guesses; /* in order of words */
    uint64_t n_guesses, guess_room;
    uint64_t max_request;           /* the largest */
    struct tmk_space_event *places; /* torch's segments as they came and went */
    struct tmk_space_hints hints;
    uint64_t n_places, place_room;
    uint64_t n_pages; /* torch's parts of expandable segments */
    uint64_t n_pools; /* torch's of cudaMallocAsync */

    struct live_block *live; /* by slot */
    uint64_t live_room;
    uint32_t n_slots;            /* that were ever given */
    struct tmk_index live_index; /* of slot + 1, by address */
    uint32_t *free_slots;
    uint64_t n_free_slots, free_room;

    struct seed_block *seeds; /* by address */
    uint64_t n_seeds, seed_room;
    uint64_t n_seed_places; /* of `places`: segments that were there at the start, by address */

    struct live_block *held; /* freed, but another stream still uses them; in no order */
    uint64_t n_held, held_room;
    bool has_held; /* whether there ever were some */

    /* State of the sweep. */
    struct live_block freed; /* last; its word is the last one */
    struct tmk_whatif_sizes *sizes;
    bool has_begun; /* an event of the device has come */
    uint64_t n_since_time;
    uint64_t n_found; /* blocks that came unseen, at the last restore */
    int64_t step;
    uint64_t now_ns;
    uint64_t torch_bytes;     /* in torch's segments on the device */
    uint64_t settled_bytes;   /* the same before the last moment at which it changed */
    uint64_t segment_ns;      /* that moment */
    uint64_t empty_at;        /* word of an EMPTY that waits for what comes next; 0: none */
    uint64_t reserved_before; /* bytes reserved before that EMPTY */
    bool grew_since;          /* a segment came after that EMPTY */
    uint64_t least_need;      /* of retries and OOMs: allocated plus requested; 0: none */
    uint64_t n_needs;         /* how many looked like retries */
    uint64_t reserved_bytes;  /* as the allocator reports */
};

/* Give a new live block a slot. Returns NO_SLOT without memory. */
uint32_t tmk_whatif_add_live(struct tmk_whatif *w, uint64_t address);
/* Take the slot of a block that goes. Returns NO_SLOT if it was not known. */
uint32_t tmk_whatif_remove_live(struct tmk_whatif *w, uint64_t address);
bool tmk_whatif_is_live(const struct tmk_whatif *w, uint64_t address);

/* Call both after the sweep, in this order. The first infers settings that were not recorded, as
 * far as segments show them; the second the limit that follows from an OOM, or from signs of
 * one. */
void tmk_whatif_infer_conf(struct tmk_whatif *w);
void tmk_whatif_infer_limit(struct tmk_whatif *w);

#endif
