# SPDX-License-Identifier: MIT
"""Reads the ring of a living or dead process: the rest of format_reader.py, docs/format.md 3."""

import struct
import time
from collections import namedtuple
from collections.abc import Iterator

from format_reader import EVENTS, KINDS, Cursor, FormatError, Trace, named, text_of

RING_HEADER = struct.Struct("<8sIIII16sQQQQQ")
PAGE_HEADER = struct.Struct("<IIQQQ32x")
SLOT = struct.Struct("<BBHIQQQ")
HEADER_SIZE, PAGE_SIZE, PAGE_SLOTS = 4096, 16384, 510
PUSH, POP = 4, 5
STRING, FRAME, STACK, THREAD, CODE, LINES = range(32, 38)  # kinds of records that are definitions
CODE_FRAME, MODULE_FILE, NATIVE_FRAME, STREAM, TORCH_MODULE, PARAMETER, ENTRIES, TAIL = range(38, 46)
TEXT_RECORDS = (16, STRING, STACK, THREAD, LINES, MODULE_FILE, PARAMETER, ENTRIES)

# rate: nanoseconds per tick × 2³²; pages are those not free, by thread and page number.
Ring = namedtuple(
    "Ring",
    "trace_id trace_path pid ticks time rate start_ticks start_monotonic_ns "
    "dropped epoch last_sequence pages problems",
)
Page = namedtuple("Page", "state thread number done done_before records")
Record = namedtuple("Record", "slot kind device id ticks a b text")  # slot: its first


def copy_ring(path) -> bytes:
    """A ring's bytes, from between two moves of records if the process lives."""
    with open(path, "rb", buffering=0) as file:
        for _ in range(100):
            file.seek(0)
            data = file.read()
            file.seek(272)
            if file.read(8) == data[272:280] and int.from_bytes(data[272:280], "little") % 2 == 0:
                break
            time.sleep(0.01)
    return data


def read_ring(path) -> Ring:
    """Reads a ring."""
    data = copy_ring(path)
    if len(data) < HEADER_SIZE or data[:16] != struct.pack("<8sII", b"TMKRING1", 4096, PAGE_SIZE):
        raise FormatError("not a ring")
    _, _, _, n_pages, pid, trace_id, *clock = RING_HEADER.unpack_from(data)
    (dropped,) = struct.unpack_from("<Q", data, 128)
    epoch, last = struct.unpack_from("<QQ", data, 272)
    path = text_of(data[512:HEADER_SIZE].split(b"\0")[0])
    ring = Ring(trace_id.hex(), path, pid, *clock, dropped, epoch, last, [], [])
    for begin in range(HEADER_SIZE, HEADER_SIZE + n_pages * PAGE_SIZE, PAGE_SIZE):
        try:
            add_page(ring, data[begin : begin + PAGE_SIZE])
        except FormatError as error:
            ring.problems.append(f"page at {begin}: {error}")
    ring.pages.sort(key=lambda page: (page.thread, page.number))
    return ring


def add_page(ring: Ring, data: bytes) -> None:
    """Adds a page that is not free to the ring."""
    if len(data) < PAGE_SIZE:
        raise FormatError("the file ends before it")
    page = Page(*PAGE_HEADER.unpack_from(data), [])
    if page.state:
        ring.pages.append(page)
        page.records.extend(parse_records(data[PAGE_HEADER.size :]))


def parse_records(data: bytes) -> Iterator[Record]:
    """The records of one page's slots, up to the first that was not written."""
    at = 0
    while at < PAGE_SLOTS:
        kind, slots, device, number, ticks, a, b = SLOT.unpack_from(data, at * SLOT.size)
        if kind == 0:
            return
        if slots == 0 or at + slots > PAGE_SLOTS:
            raise FormatError(f"slot {at} has a wrong number of slots")
        text = Cursor(data[at * SLOT.size + 24 : (at + slots) * SLOT.size])
        length = a & 0xFFFFFFFF if kind in TEXT_RECORDS else 0
        yield Record(at, kind, device, number, ticks, a, b, text.take(length))
        at += slots


def pending(trace: Trace, ring: Ring) -> Iterator[tuple[int, Record]]:
    """The records that are not yet in the trace, each with its thread."""
    last = max([ring.last_sequence] + [chunk.sequence for chunk in trace.chunks])
    for page in ring.pages:
        done = page.done if page.done >> 16 <= last else page.done_before
        for record in page.records:
            if record.slot >= done & 0xFFFF:
                yield page.thread, record


def define_record(trace: Trace, record: Record) -> None:
    """Adds a record to the trace's definitions if it is one."""
    high, low = record.a >> 32, record.a & 0xFFFFFFFF
    if record.kind == STRING:
        trace.define(1, record.id, text_of(record.text))
    elif record.kind == FRAME:
        trace.define(2, record.id, [high, low, record.b])
    elif record.kind == STACK:
        frames = struct.unpack(f"<{low // 4}I", record.text[: low // 4 * 4])
        trace.define(3, record.id, list(frames))
    elif record.kind == THREAD:
        trace.define(4, record.id, (high, text_of(record.text)))
    elif record.kind == CODE:
        trace.define(5, record.id, [high, low, record.b & 0xFFFFFFFF, record.b >> 32])
    elif record.kind in (LINES, ENTRIES):
        trace.define(6, record.id, (high, record.text))
    elif record.kind in (CODE_FRAME, NATIVE_FRAME):
        trace.define(record.kind - 31, record.id, [record.a, record.b])
    elif record.kind == MODULE_FILE:
        trace.define(8, record.id, (record.text[:high], text_of(record.text[high:])))
    elif record.kind == STREAM:
        trace.define(10, record.id, [record.device, record.a])
    elif record.kind == TORCH_MODULE:
        trace.define(11, record.id, record.a)
    elif record.kind == PARAMETER:
        address, size, name, _ = struct.unpack_from("<QQII", record.text)
        numbers = [name, high >> 16, high & 0xFFFF, address, size]
        trace.define(12, record.id, (numbers, text_of(record.text[24:])))
    elif record.kind == TAIL:
        trace.define(14, record.id, None)


def record_fields(strings: dict[int, str], record: Record) -> dict:
    """The fields of a record's event."""
    kind, a, b = record.kind, record.a, record.b
    place = {"device": record.device, "address": a}
    if kind in (1, 21):
        return {**place, "size": b & (1 << 48) - 1, "stack": record.id, "stream": b >> 48,
                "requested": 0}
    if kind == 2:
        return place
    if kind == 3:
        return {**place, "category": b, **named(strings, record.id)}
    if kind == 4:
        return {"range_kind": a, **named(strings, record.id)}
    if kind == 5:
        return {"range_kind": a}
    if kind == 6:
        return {"step": a - (a >> 63 << 64)}
    if kind == 16:
        return {**named(strings, record.id), "info": text_of(record.text)}
    if kind == 19:
        return {"device": record.device, "bytes": a}
    if kind == 20:
        return {"device": record.device}
    if kind == 27:
        return {**place, "flags": b, **named(strings, record.id)}
    return {"device": record.device, "requested": a, "capacity": b, "stack": record.id, "free": None}


def ring_events(trace: Trace, ring: Ring) -> list[dict]:
    """The ring's events that are not yet in the trace, in order; defines what the ring defines.

    Drops are no records; ring.dropped counts them. Beside a living process, read the ring first,
    then the trace until ring.last_sequence.
    """
    if ring.trace_id != trace.trace_id:
        raise FormatError("the ring is of another trace")
    found = sorted(pending(trace, ring), key=lambda pair: pair[1].ticks)
    for _, record in found:
        define_record(trace, record)
    last = max((chunk.end for chunk in trace.chunks if chunk.kind == EVENTS), default=0)
    rate = ring.rate or (10**9 << 32) // int(trace.info.get("ticks_per_second", 10**9))
    events = []
    for thread, record in found:
        if record.kind in KINDS:
            passed = record.ticks - ring.ticks
            now = ring.time + (passed * rate >> 32) if passed >= 0 else last
            fields = record_fields(trace.strings, record)
            kind = KINDS[record.kind]
            if record.kind in (PUSH, POP) and record.b:
                thread = record.b  # whose range it is
            events.append({"kind": kind, "time_ns": now, "thread": thread, **fields})
    return events
