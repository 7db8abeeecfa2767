/* SPDX-License-Identifier: MIT */
/* interop/out/perfetto_counter.h - a value over time: every change or, where there are too many
 * for a viewer, the most and the last of each part of the time. So peaks are exact, whatever the
 * run's length. */
#ifndef TMK_INTEROP_OUT_PERFETTO_COUNTER_H
#define TMK_INTEROP_OUT_PERFETTO_COUNTER_H

#include "interop/out/perfetto_packets.h"

struct tmk_counter { /* zero it, then set track and part_ns */
    uint64_t track;
    uint64_t part_ns; /* 0: every change */
    bool is_named;    /* the track was described; set by the owner */

    bool has_written, is_waiting;
    uint64_t written;
    uint64_t part_end_ns;
    uint64_t most, most_ns;
    uint64_t last, last_ns;
};

void tmk_counter_set(struct tmk_counter *c, struct tmk_packets *k, uint64_t ns, uint64_t value);
/* Write the pending values. */
void tmk_counter_flush(struct tmk_counter *c, struct tmk_packets *k);

#endif
