/* SPDX-License-Identifier: MIT */
/* interop/out/perfetto_packets.c - see perfetto_packets.h. */
#include "interop/out/perfetto_packets.h"

#include "base/bytes.h"
#include "kit/utf8.h"

/* Field numbers. */
enum {
    TRACE_PACKET = 1,

    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_TRACK = 60,

    TRACK_ID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8,
    TRACK_CHILD_ORDERING = 11, /* 3: by TRACK_ORDER */
    TRACK_ORDER = 12,

    PROCESS_PID = 1,
    PROCESS_NAME = 6,
    THREAD_PID = 1,
    THREAD_TID = 2,
    THREAD_NAME = 5,
    COUNTER_UNIT = 3,

    EVENT_NOTE = 4,
    EVENT_TYPE = 9,
    EVENT_NAME_NUMBER = 10,
    EVENT_TRACK = 11,
    EVENT_NAME = 23,
    EVENT_VALUE = 30,

    NOTE_NUMBER = 3,
    NOTE_TEXT = 6,
    NOTE_KEY = 10,

    INTERNED_NAME = 2,
    INTERNED_NUMBER = 1,
    INTERNED_TEXT = 2,
};

enum { BY_ORDER = 3, UNIT_BYTES = 3, FLAG_CLEARED = 1, FLAG_NEEDS_STATE = 2 };
enum event_type { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };
enum { MESSAGE_BYTES = 32768, PART_BYTES = 16384, LONGEST_TEXT = 4096 };

static void put_packet_number(struct tmk_sink *s, unsigned field, uint64_t value)
{
    tmk_sink_varint(s, (uint64_t)field << 3 | WIRE_VARINT);
    tmk_sink_varint(s, value);
}

static void put_wire_bytes(struct tmk_sink *s, unsigned field, const void *bytes, size_t n)
{
    tmk_sink_varint(s, (uint64_t)field << 3 | WIRE_BYTES);
    tmk_sink_varint(s, n);
    tmk_sink_bytes(s, bytes, n);
}

/* A text longer than any single text of a trace is cut. */
static void put_wire_text(struct tmk_sink *s, unsigned field, const char *text)
{
    char repaired[LONGEST_TEXT];
    size_t n = tmk_utf8_repair(text, repaired, sizeof repaired);
    put_wire_bytes(s, field, repaired, n);
}

static void put_part(struct tmk_sink *s, unsigned field, const struct tmk_sink *part)
{
    put_wire_bytes(s, field, part->start, tmk_sink_length(part));
}

/* A packet that exceeds MESSAGE_BYTES is left out; none is that long. */
static void write_packet(struct tmk_packets *k, struct tmk_sink *packet)
{
    uint8_t head[2 * TMK_VARINT_MAX_BYTES];
    struct tmk_sink h = tmk_sink_of(head, sizeof head);
    put_packet_number(packet, PACKET_SEQUENCE, k->sequence);
    put_packet_number(packet, PACKET_FLAGS,
                      k->has_begun ? FLAG_NEEDS_STATE : FLAG_CLEARED | FLAG_NEEDS_STATE);
    k->has_begun = true;
    if (packet->full)
        return;
    tmk_sink_varint(&h, (uint64_t)TRACE_PACKET << 3 | WIRE_BYTES);
    tmk_sink_varint(&h, tmk_sink_length(packet));
    tmk_out_bytes(k->out, head, tmk_sink_length(&h));
    tmk_out_bytes(k->out, packet->start, tmk_sink_length(packet));
}

/* ---- tracks ---- */

static void put_owner(struct tmk_sink *s, const struct tmk_track *track)
{
    uint8_t bytes[PART_BYTES];
    struct tmk_sink part = tmk_sink_of(bytes, sizeof bytes);
    switch (track->kind) {
    case TMK_TRACK_PROCESS:
        put_packet_number(&part, PROCESS_PID, track->pid);
        put_wire_text(&part, PROCESS_NAME, track->name);
        put_part(s, TRACK_PROCESS, &part);
        break;
    case TMK_TRACK_THREAD:
        put_packet_number(&part, THREAD_PID, track->pid);
        put_packet_number(&part, THREAD_TID, track->tid);
        put_wire_text(&part, THREAD_NAME, track->name);
        put_part(s, TRACK_THREAD, &part);
        break;
    case TMK_TRACK_COUNTER:
        put_packet_number(&part, COUNTER_UNIT, UNIT_BYTES);
        put_part(s, TRACK_COUNTER, &part);
        break;
    case TMK_TRACK_PLAIN:
        break;
    }
}

void tmk_packets_track(struct tmk_packets *k, const struct tmk_track *track)
{
    uint8_t bytes[MESSAGE_BYTES], inner[PART_BYTES];
    struct tmk_sink packet = tmk_sink_of(bytes, sizeof bytes);
    struct tmk_sink t = tmk_sink_of(inner, sizeof inner);
    put_packet_number(&t, TRACK_ID, track->id);
    if (track->parent)
        put_packet_number(&t, TRACK_PARENT, track->parent);
    put_wire_text(&t, TRACK_NAME, track->name);
    put_owner(&t, track);
    if (track->kind == TMK_TRACK_PROCESS)
        put_packet_number(&t, TRACK_CHILD_ORDERING, BY_ORDER);
    put_packet_number(&t, TRACK_ORDER, (uint64_t)track->order);
    put_part(&packet, PACKET_TRACK, &t);
    write_packet(k, &packet);
}

/* ---- events ---- */

static void put_event(struct tmk_sink *e, enum event_type type, uint64_t track)
{
    put_packet_number(e, EVENT_TYPE, type);
    put_packet_number(e, EVENT_TRACK, track);
}

static void write_event(struct tmk_packets *k, struct tmk_sink *packet, const struct tmk_sink *e,
                        uint64_t ns)
{
    put_packet_number(packet, PACKET_TIMESTAMP, ns);
    put_part(packet, PACKET_EVENT, e);
    write_packet(k, packet);
    k->n_events++;
}

static void put_interned(struct tmk_sink *packet, const struct tmk_packet_name *name)
{
    uint8_t outer_bytes[PART_BYTES], inner_bytes[PART_BYTES];
    struct tmk_sink outer = tmk_sink_of(outer_bytes, sizeof outer_bytes);
    struct tmk_sink inner = tmk_sink_of(inner_bytes, sizeof inner_bytes);
    put_packet_number(&inner, INTERNED_NUMBER, name->number);
    put_wire_text(&inner, INTERNED_TEXT, name->text);
    put_part(&outer, INTERNED_NAME, &inner);
    put_part(packet, PACKET_INTERNED, &outer);
}

void tmk_packets_begin(struct tmk_packets *k, uint64_t track, uint64_t ns,
                       const struct tmk_packet_name *name)
{
    uint8_t bytes[MESSAGE_BYTES], inner[128];
    struct tmk_sink packet = tmk_sink_of(bytes, sizeof bytes);
    struct tmk_sink e = tmk_sink_of(inner, sizeof inner);
    if (name->text)
        put_interned(&packet, name);
    put_event(&e, TYPE_BEGIN, track);
    put_packet_number(&e, EVENT_NAME_NUMBER, name->number);
    write_event(k, &packet, &e, ns);
}

void tmk_packets_end(struct tmk_packets *k, uint64_t track, uint64_t ns)
{
    uint8_t bytes[256], inner[128];
    struct tmk_sink packet = tmk_sink_of(bytes, sizeof bytes);
    struct tmk_sink e = tmk_sink_of(inner, sizeof inner);
    put_event(&e, TYPE_END, track);
    write_event(k, &packet, &e, ns);
}

void tmk_packets_value(struct tmk_packets *k, uint64_t track, uint64_t ns, uint64_t value)
{
    uint8_t bytes[256], inner[128];
    struct tmk_sink packet = tmk_sink_of(bytes, sizeof bytes);
    struct tmk_sink e = tmk_sink_of(inner, sizeof inner);
    put_event(&e, TYPE_COUNTER, track);
    put_packet_number(&e, EVENT_VALUE, value);
    write_event(k, &packet, &e, ns);
}

static void put_wire_note(struct tmk_sink *e, const struct tmk_packet_note *note)
{
    uint8_t bytes[PART_BYTES];
    struct tmk_sink part = tmk_sink_of(bytes, sizeof bytes);
    put_wire_text(&part, NOTE_KEY, note->key);
    if (note->text)
        put_wire_text(&part, NOTE_TEXT, note->text);
    else
        put_packet_number(&part, NOTE_NUMBER, note->number);
    put_part(e, EVENT_NOTE, &part);
}

void tmk_packets_say(struct tmk_packets *k, uint64_t track, uint64_t ns, const char *name,
                     const struct tmk_packet_note *notes, unsigned n_notes, bool is_slice)
{
    uint8_t bytes[MESSAGE_BYTES], inner[MESSAGE_BYTES];
    struct tmk_sink packet = tmk_sink_of(bytes, sizeof bytes);
    struct tmk_sink e = tmk_sink_of(inner, sizeof inner);
    put_event(&e, is_slice ? TYPE_BEGIN : TYPE_INSTANT, track);
    put_wire_text(&e, EVENT_NAME, name);
    for (unsigned i = 0; i < n_notes; i++)
        put_wire_note(&e, &notes[i]);
    write_event(k, &packet, &e, ns);
}
