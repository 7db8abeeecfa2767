/* SPDX-License-Identifier: MIT */
/* passes/oom/ooms.h - every OOM, with who had the memory at that moment.
 *
 * Holders are summed while the sweep stands at the event. A program that catches the error may
 * meet it thousands of times: the first ones and the last are kept, all are counted. */
#ifndef TMK_PASSES_OOM_OOMS_H
#define TMK_PASSES_OOM_OOMS_H

#include "model/holders.h"
#include "model/run.h"
#include "passes/group.h"
#include "trace/defs.h"
#include "trace/replay.h"

struct tmk_oom {
    uint64_t time_ns; /* trace time */
    int64_t step;     /* TMK_NO_STEP: before the first */
    uint16_t device;
    uint64_t requested_bytes;
    uint64_t capacity_bytes;          /* 0: not known */
    uint64_t allocated_bytes;         /* in blocks on the device then */
    uint64_t reserved_bytes;          /* by the framework's allocator; UINT64_MAX: not known */
    bool is_of_driver;                /* the driver failed it, not the framework's allocator */
    uint64_t segment_bytes;           /* in the process's driver segments on the device */
    uint64_t used_bytes, total_bytes; /* of the whole device, as last seen; UINT64_MAX: not known */
    uint64_t free_bytes;              /* of the device, as the event tells; UINT64_MAX: not known */
    bool has_site;
    struct tmk_frame site;      /* allocation site of the request */
    const char *module, *stage; /* NULL: none */
};

/* True for a request of torch's allocator for device memory that the driver failed: it is no OOM
 * yet. The allocator gives back its cache and asks again, and reports the OOM itself when that
 * does not help. For host memory it asks only once. */
bool tmk_oom_is_first_try(struct tmk_holders *holders, const struct tmk_event *ev);

enum { TMK_NEAR_PERCENT = 95 }; /* of a device in use: it is almost full */

/* A near miss of a process without an OOM, as in oom_scene.h: the driver failed requests and the
 * allocator made room, or a device was almost full. A failed request tells more than a sample. */
struct tmk_near_miss {
    uint16_t device;
    uint64_t n_retries;               /* 0: the device was almost full */
    uint64_t requested_bytes;         /* of the last retry */
    uint64_t used_bytes, total_bytes; /* of the device, at its fullest */
};

struct tmk_ooms;

int tmk_ooms_open(const struct tmk_process *p, struct tmk_ooms **ret_ooms);
struct tmk_ooms *tmk_ooms_close(struct tmk_ooms *o);
struct tmk_visitor tmk_ooms_visitor(struct tmk_ooms *o);
/* Call it after the sweep. Returns 0 or TMK_ENOMEM. */
int tmk_ooms_finish(struct tmk_ooms *o, struct tmk_error *err);

uint64_t tmk_ooms_n(const struct tmk_ooms *o);      /* that happened */
uint64_t tmk_ooms_n_kept(const struct tmk_ooms *o); /* in order; the last kept is the last of all */
const struct tmk_oom *tmk_ooms_get(const struct tmk_ooms *o, uint64_t i);
/* False: there was none, or memory ran out. */
bool tmk_ooms_near_miss(const struct tmk_ooms *o, struct tmk_near_miss *ret);
/* The blocks alive on the device then, summed by category, module or site; borrowed until close.
 * n is 0 where holders were not summed. */
int tmk_ooms_holders(const struct tmk_ooms *o, uint64_t i, enum tmk_by by,
                     const struct tmk_peak_row **ret_rows, uint64_t *ret_n);

#endif
