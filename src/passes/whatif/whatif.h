/* SPDX-License-Identifier: MIT */
/* passes/whatif/whatif.h - what the framework's allocator would have reserved with other
 * settings or on another GPU: the blocks of one device of one process, replayed through
 * model/caching_allocator.h.
 *
 * One sweep keeps the allocations and frees of the device (8 bytes an event); after it any number
 * of settings is replayed without reading the trace again.
 *
 * A recorded OOM is replayed as a request too. Where it fails again, the replay goes on, as the
 * program did; where it succeeds, the block is freed at once, since it is not known what the
 * program would have done with it. A request that succeeded when recorded and fails in the
 * replay ends it: the figures are those until then. */
#ifndef TMK_PASSES_WHATIF_WHATIF_H
#define TMK_PASSES_WHATIF_WHATIF_H

#include "model/alloc_conf.h"
#include "model/run.h"
#include "trace/replay.h"

struct tmk_whatif;

/* What was recorded of the device. Bytes are TMK_BYTES_UNKNOWN where the trace does not tell. */
struct tmk_whatif_recorded {
    uint64_t n_events;      /* allocations and frees on the device */
    uint64_t n_seeded;      /* blocks that were there before the first event */
    bool knows_requests;    /* requested sizes are known; else the blocks' rounded ones stand in */
    const char *alloc_conf; /* settings when recorded; NULL: not known. Borrowed */
    bool is_conf_inferred;  /* not recorded, but the segments show that they were expandable, or
                               async */
    bool is_conf_wrong;     /* torch would reject them; defaults stand in */
    bool is_async;          /* recorded with backend:cudaMallocAsync */
    uint64_t peak_allocated_bytes;
    uint64_t peak_reserved_bytes; /* as measured */
    uint64_t n_ooms;
    uint64_t limit_bytes; /* torch's own, or what follows from the first recorded OOM */
    /* Without an OOM: how often the allocator gave back its cache and took a new segment at
     * once, each time when it would otherwise have reserved more than it ever did. A retry looks
     * like that (so does a program that empties the cache). If it is a retry, the limit is at
     * least peak_reserved_bytes and ... */
    uint64_t n_returns;
    uint64_t limit_below_bytes; /* ... below this */
    uint64_t card_bytes;        /* of the device */
    uint64_t outside_bytes;     /* of the process on the device, outside torch: context, NCCL ... */
};

struct tmk_whatif_setting {
    struct tmk_alloc_conf conf;
    uint64_t limit_bytes; /* the most that torch may reserve; TMK_ALLOC_NO_BOUND: no limit */
};

struct tmk_whatif_oom {
    uint64_t event;           /* number of the event among those replayed for the device, from 0 */
    uint64_t time_ns;         /* trace time */
    int64_t step;             /* TMK_NO_STEP: before the first */
    uint64_t requested_bytes; /* as the trace knows it */
    bool is_recorded;         /* the recorded run had an OOM here too */
};

struct tmk_whatif_result {
    uint64_t peak_allocated_bytes;
    uint64_t peak_reserved_bytes;
    uint64_t wasted_bytes; /* difference of the peaks: reserved beyond what blocks ever needed */
    uint64_t n_retries;
    uint64_t n_segments; /* most at once */
    uint64_t n_ooms;
    bool has_oom;
    struct tmk_whatif_oom oom; /* the first, when has_oom */
};

/* Give the visitor to a sweep, then call finish, then replay. Returns 0 or TMK_ENOMEM. close
 * takes NULL. */
int tmk_whatif_open(const struct tmk_process *p, uint16_t device, struct tmk_whatif **ret_whatif);
struct tmk_whatif *tmk_whatif_close(struct tmk_whatif *w);
struct tmk_visitor tmk_whatif_visitor(struct tmk_whatif *w);
int tmk_whatif_finish(struct tmk_whatif *w, const struct tmk_replay *rp, struct tmk_error *err);

const struct tmk_whatif_recorded *tmk_whatif_recorded(const struct tmk_whatif *w);

/* Replay under a setting. Returns 0 or TMK_ENOMEM. */
int tmk_whatif_replay(const struct tmk_whatif *w, const struct tmk_whatif_setting *setting,
                      struct tmk_whatif_result *ret_result, struct tmk_error *err);
/* Find the smallest limit, to 2 MiB, under which nothing runs out with `conf`. Returns 0 or
 * TMK_ENOMEM. */
int tmk_whatif_smallest(const struct tmk_whatif *w, const struct tmk_alloc_conf *conf,
                        uint64_t *ret_limit_bytes, struct tmk_error *err);

/* Settings that are worth a try; the list ends in one without a text. */
struct tmk_whatif_choice {
    const char *conf;
    bool needs_limit; /* without one it changes nothing */
};
extern const struct tmk_whatif_choice tmk_whatif_choices[];

/* The recorded settings, as far as the model has them: "" for torch's defaults. */
const char *tmk_whatif_recorded_conf(const struct tmk_whatif_recorded *f);
/* The part of a device that is left for torch, beside what the process has outside it; 0:
 * nothing. */
uint64_t tmk_whatif_share(const struct tmk_whatif_recorded *f, uint64_t card_bytes);
/* `limit_bytes`, or what the settings' per_process_memory_fraction leaves of a device if that is
 * less. TMK_BYTES_UNKNOWN: the device's memory is not known, and the fraction has no effect. */
uint64_t tmk_whatif_limit(const struct tmk_alloc_conf *conf, uint64_t limit_bytes,
                          uint64_t card_bytes);

#endif
