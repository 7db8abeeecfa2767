/* SPDX-License-Identifier: MIT */
/* interop/out/perfetto_counter.c - see perfetto_counter.h. */
#include "interop/out/perfetto_counter.h"

static void write_counter_value(struct tmk_counter *c, struct tmk_packets *k, uint64_t ns,
                                uint64_t value)
{
    if (c->has_written && c->written == value)
        return;
    tmk_packets_value(k, c->track, ns, value);
    c->has_written = true;
    c->written = value;
}

void tmk_counter_flush(struct tmk_counter *c, struct tmk_packets *k)
{
    if (!c->is_waiting)
        return;
    write_counter_value(c, k, c->most_ns, c->most);
    write_counter_value(c, k, c->last_ns, c->last);
    c->is_waiting = false;
}

void tmk_counter_set(struct tmk_counter *c, struct tmk_packets *k, uint64_t ns, uint64_t value)
{
    if (c->part_ns == 0 || !c->has_written) {
        write_counter_value(c, k, ns, value);
        return;
    }
    if (c->is_waiting && ns >= c->part_end_ns)
        tmk_counter_flush(c, k);
    if (!c->is_waiting) {
        c->is_waiting = true;
        c->part_end_ns = ns + c->part_ns;
        c->most = value;
        c->most_ns = ns;
    } else if (value > c->most) {
        c->most = value;
        c->most_ns = ns;
    }
    c->last = value;
    c->last_ns = ns;
}
