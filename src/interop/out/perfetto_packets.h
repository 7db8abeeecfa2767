/* SPDX-License-Identifier: MIT */
/* interop/out/perfetto_packets.h - the packets of a Perfetto trace, encoded by hand: protobuf's
 * wire format takes a few lines, and a library for it would be our largest dependency.
 *
 * Field numbers are those of protos/perfetto/trace/ (trace_packet, track_descriptor, track_event,
 * interned_data), which never change. A sequence holds the packets of one process; in each, a
 * name is written once and then referred to by its number. */
#ifndef TMK_INTEROP_OUT_PERFETTO_PACKETS_H
#define TMK_INTEROP_OUT_PERFETTO_PACKETS_H

#include <stdbool.h>

#include "interop/out/out.h"

struct tmk_packets {
    struct tmk_out *out;
    uint32_t sequence; /* from 1 */
    uint64_t n_events;
    bool has_begun; /* the sequence's first packet is written */
};

enum tmk_track_kind {
    TMK_TRACK_PLAIN,
    TMK_TRACK_PROCESS,
    TMK_TRACK_THREAD,
    TMK_TRACK_COUNTER, /* of bytes */
};

struct tmk_track {
    enum tmk_track_kind kind;
    uint64_t id;     /* unique in the file */
    uint64_t parent; /* 0: none */
    const char *name;
    uint64_t pid, tid; /* of processes and threads */
    int64_t order;     /* among its siblings */
};

void tmk_packets_track(struct tmk_packets *k, const struct tmk_track *track);

/* A name by its number, from 1; `text` gives the name itself the first time, and is NULL
 * afterwards. */
struct tmk_packet_name {
    uint64_t number;
    const char *text;
};

/* A note of an instant: either text or number. */
struct tmk_packet_note {
    const char *key;
    const char *text;
    uint64_t number;
};

void tmk_packets_begin(struct tmk_packets *k, uint64_t track, uint64_t ns,
                       const struct tmk_packet_name *name);
void tmk_packets_end(struct tmk_packets *k, uint64_t track, uint64_t ns);
void tmk_packets_value(struct tmk_packets *k, uint64_t track, uint64_t ns, uint64_t value);
/* Write an event with name and notes as texts. It begins and ends at once; with is_slice it only
 * begins. */
void tmk_packets_say(struct tmk_packets *k, uint64_t track, uint64_t ns, const char *name,
                     const struct tmk_packet_note *notes, unsigned n_notes, bool is_slice);

#endif
