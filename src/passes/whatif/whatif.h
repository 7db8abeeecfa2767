/* SPDX-License-Identifier: MIT */
/* passes/whatif/whatif.h - what the framework's allocator would have held with other settings or
 * another card: the blocks of one device of one process, replayed through
 * model/caching_allocator.h.
 *
 * One sweep keeps the allocations and frees of the device (8 bytes an event); after it any number
 * of settings is replayed without reading the trace again.
 *
 * A recorded out-of-memory is replayed as a request too. Where it fails again, replay goes on, as
 * the program did; where it succeeds, the block is given back at once, since what the program would
 * have done with it is not known. A request that succeeded when recorded and fails in the replay
 * ends it: figures are those until then. */
#ifndef TMK_PASSES_WHATIF_WHATIF_H
#define TMK_PASSES_WHATIF_WHATIF_H

#include "model/alloc_conf.h"
#include "model/run.h"
#include "trace/replay.h"

struct tmk_whatif;

/* What was recorded. Bytes are TMK_BYTES_UNKNOWN where the trace does not tell. */
struct tmk_whatif_facts {
    uint64_t n_events;      /* allocations and frees on the device */
    uint64_t n_seeded;      /* blocks that were there before the first event */
    bool knows_requests;    /* requested sizes; else blocks' rounded ones */
    const char *alloc_conf; /* settings when recorded; NULL: not known. Borrowed */
    bool is_conf_inferred; /* not recorded, but segments show that they were expandable, or async */
    bool is_conf_wrong;    /* torch would not take them; defaults stand in */
    bool is_async;         /* recorded with backend:cudaMallocAsync */
    uint64_t peak_allocated_bytes;
    uint64_t peak_reserved_bytes; /* as measured */
    uint64_t n_ooms;
    uint64_t limit_bytes; /* torch's own, or what follows from the first recorded OOM */
    /* Without an OOM: how often it gave back what it had cached and took a new segment at once,
     * each time when it would else have held more than it ever did. So a retry looks (or a program
     * that empties the cache); if it is one, the limit is at least peak_reserved_bytes and ... */
    uint64_t n_returns;
    uint64_t limit_below_bytes; /* ... below this */
    uint64_t card_bytes;        /* of the device */
    uint64_t outside_bytes; /* of the process on the device but not torch's: context, NCCL ... */
};

struct tmk_whatif_setting {
    struct tmk_alloc_conf conf;
    uint64_t limit_bytes; /* what torch's allocator may have; TMK_ALLOC_NO_BOUND: no limit */
};

struct tmk_whatif_oom {
    uint64_t event;           /* n-th event of the trace's device that is replayed, from 0 */
    uint64_t time_ns;         /* trace time */
    int64_t step;             /* TMK_NO_STEP: before the first */
    uint64_t requested_bytes; /* as the trace knows it */
    bool is_recorded;         /* the recording ran out here too */
};

struct tmk_whatif_result {
    uint64_t peak_allocated_bytes;
    uint64_t peak_reserved_bytes;
    uint64_t wasted_bytes; /* reserved beyond what blocks ever needed: the peaks' difference */
    uint64_t n_retries;
    uint64_t n_segments; /* most at once */
    uint64_t n_ooms;
    bool has_oom;
    struct tmk_whatif_oom oom; /* the first, when has_oom */
};

/* 0 or TMK_ENOMEM. Give the visitor to a sweep, then call finish, then replay. close takes NULL. */
int tmk_whatif_open(const struct tmk_process *p, uint16_t device, struct tmk_whatif **ret_whatif);
struct tmk_whatif *tmk_whatif_close(struct tmk_whatif *w);
struct tmk_visitor tmk_whatif_visitor(struct tmk_whatif *w);
int tmk_whatif_finish(struct tmk_whatif *w, const struct tmk_replay *rp, struct tmk_error *err);

const struct tmk_whatif_facts *tmk_whatif_facts(const struct tmk_whatif *w);

/* 0, or TMK_ENOMEM. */
int tmk_whatif_replay(const struct tmk_whatif *w, const struct tmk_whatif_setting *setting,
                      struct tmk_whatif_result *ret_result, struct tmk_error *err);
/* The smallest limit, to 2 MiB, with which nothing runs out under `conf`. 0 or TMK_ENOMEM. */
int tmk_whatif_smallest(const struct tmk_whatif *w, const struct tmk_alloc_conf *conf,
                        uint64_t *ret_limit_bytes, struct tmk_error *err);

/* Settings that are worth a try; ends in one without a text. */
struct tmk_whatif_choice {
    const char *conf;
    bool needs_limit; /* without one it changes nothing */
};
extern const struct tmk_whatif_choice tmk_whatif_choices[];

/* The recorded settings, as far as the model has them: "" for torch's defaults. */
const char *tmk_whatif_recorded_conf(const struct tmk_whatif_facts *f);
/* What is left for torch of a card, by what the process held beside it; 0: nothing. */
uint64_t tmk_whatif_share(const struct tmk_whatif_facts *f, uint64_t card_bytes);
/* `limit_bytes`, or what per_process_memory_fraction of the settings leaves of a card if that is
 * less. TMK_BYTES_UNKNOWN: the card is not known, and the fraction without effect. */
uint64_t tmk_whatif_limit(const struct tmk_alloc_conf *conf, uint64_t limit_bytes,
                          uint64_t card_bytes);

#endif
