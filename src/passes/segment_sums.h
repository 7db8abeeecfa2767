/* SPDX-License-Identifier: MIT */
/* passes/segment_sums.h - what a process has of each device's memory by segments, by owner, as of
 * the event that a sweep stands at.
 *
 * For passes to have beside their own: they hand on events and restored. Sums are carried along, so
 * a look at them costs the same however many segments there are. Devices beyond TMK_MAX_DEVICES
 * are not counted; owners beyond TMK_SUMS_MAX_OWNERS are counted as unknown. */
#ifndef TMK_PASSES_SEGMENT_SUMS_H
#define TMK_PASSES_SEGMENT_SUMS_H

#include "kit/textmap.h"
#include "model/holders.h"
#include "model/run.h"
#include "trace/replay.h"
#include "trace/state.h"

enum { TMK_SUMS_MAX_OWNERS = 256 };

enum tmk_sums_owner { /* numbers of owners that are always there */
                      TMK_SUMS_UNKNOWN,
                      TMK_SUMS_TORCH,
};

struct tmk_owner_sum {
    uint64_t bytes;
    uint64_t n_segments;
};

/* Memory on the device alone: neither mappings nor what is on the host. */
struct tmk_device_sums {
    uint16_t device;
    uint64_t bytes; /* of all owners */
    uint64_t n_segments;
    uint64_t pool_bytes; /* in pools with a known owner */
    struct tmk_owner_sum owners[TMK_SUMS_MAX_OWNERS];
};

struct tmk_segment_sums {
    struct tmk_holders *holders;
    struct tmk_textmap owners; /* names, by number */
    uint32_t n_devices;
    uint64_t n_seen, n_begun; /* of the state's segments, when last looked at */
    bool failed;              /* no memory for a name */
    struct tmk_device_sums devices[TMK_MAX_DEVICES];
};

/* Returns 0 or TMK_ENOMEM. close takes NULL and returns NULL. */
int tmk_segment_sums_open(const struct tmk_process *p, struct tmk_segment_sums **ret_sums);
struct tmk_segment_sums *tmk_segment_sums_close(struct tmk_segment_sums *sums);

/* Call these from a visitor's event and restored. It hears at least: */
#define TMK_SEGMENT_SUMS_KINDS (TMK_HEARS(SEGMENT) | TMK_HEARS(SEGMENT_END))
void tmk_segment_sums_event(struct tmk_segment_sums *sums, const struct tmk_replay *rp,
                            const struct tmk_event *ev);
void tmk_segment_sums_restored(struct tmk_segment_sums *sums, const struct tmk_replay *rp);

/* Call it after the sweep. Returns 0, or TMK_ENOMEM when an owner was not found for want of memory.
 */
int tmk_segment_sums_check(const struct tmk_segment_sums *sums);

/* The device's index in `devices`, which is made when new; TMK_MAX_DEVICES: there is none left. */
uint32_t tmk_segment_sums_place(struct tmk_segment_sums *sums, uint16_t device);

#endif
