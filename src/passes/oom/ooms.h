/* SPDX-License-Identifier: MIT */
/* passes/oom/ooms.h - every refused allocation, with who held the memory at that moment.
 *
 * Holders are added up while the sweep stands at the event. A program that catches the error may
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
    bool is_of_driver;                /* it refused, not the framework's allocator */
    uint64_t segment_bytes;           /* that the process had of the driver on the device */
    uint64_t used_bytes, total_bytes; /* of the whole device, as last seen; UINT64_MAX: not known */
    uint64_t free_bytes; /* of the device, as the event has it; UINT64_MAX: not known */
    bool has_site;
    struct tmk_frame site;      /* who asked */
    const char *module, *stage; /* NULL: none */
};

/* What the driver refuses torch's allocator of a card is no failure yet: it gives back what it has
 * cached and asks again, and says so itself when that does not help. Host memory it asks for once.
 */
bool tmk_oom_is_first_try(struct tmk_holders *holders, const struct tmk_event *ev);

struct tmk_ooms;

int tmk_ooms_open(const struct tmk_process *p, struct tmk_ooms **ret_ooms);
struct tmk_ooms *tmk_ooms_close(struct tmk_ooms *o);
struct tmk_visitor tmk_ooms_visitor(struct tmk_ooms *o);
/* After the sweep: 0 or TMK_ENOMEM. */
int tmk_ooms_finish(struct tmk_ooms *o, struct tmk_error *err);

uint64_t tmk_ooms_n(const struct tmk_ooms *o);      /* that happened */
uint64_t tmk_ooms_n_kept(const struct tmk_ooms *o); /* in order; the last kept is the last of all */
const struct tmk_oom *tmk_ooms_get(const struct tmk_ooms *o, uint64_t i);
/* What was alive on the device then, by category, module or site; borrowed until close. n is 0
 * where holders were not added up. */
int tmk_ooms_holders(const struct tmk_ooms *o, uint64_t i, enum tmk_by by,
                     const struct tmk_peak_row **ret_rows, uint64_t *ret_n);

#endif
