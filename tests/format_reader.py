# SPDX-License-Identifier: MIT
"""A second, independent reader of the trace format, written from docs/format.md alone.

Its purpose is to show that the document suffices and to be compared with the real reader:

    python3 tests/format_reader.py TRACE [--all] [--json] [--check] [--definitions]

prints one line per event, in order. Fields are separated by one space and always stand in this
order; numbers are decimal, addresses hexadecimal with 0x:

    TIME alloc thread=T device=D address=0xA size=N stack=S stream=S requested=N
    TIME free thread=T device=D address=0xA
    TIME tag thread=T device=D address=0xA category=C name=TEXT
    TIME push thread=T range=K name=TEXT
    TIME pop thread=T range=K
    TIME step thread=T step=N
    TIME mark thread=T name=TEXT info=TEXT
    TIME oom thread=T device=D requested=N capacity=N stack=S
    TIME drop thread=T count=N
    TIME reserved thread=T device=D bytes=N
    TIME device_end thread=T device=D
    TIME segment thread=T device=D kind=K address=0xA size=N stack=S
    TIME segment_end thread=T device=D kind=K address=0xA
    TIME held thread=T device=D address=0xA size=N
    TIME released thread=T device=D address=0xA
    TIME holder thread=T device=D address=0xA flags=N name=TEXT
    TIME sample thread=T device=D used=N total=N own=N others=N
    TIME other thread=T type=N

TIME is in nanoseconds since the trace's start. TEXT is the text between double quotes, escaped as
in JSON (\\" \\\\ \\b \\f \\n \\r \\t, other bytes under 0x20 as \\u00xx in lower case); everything
else, bytes that are no UTF-8 too, is printed as it is. It is - for a name whose id is 0 or not
defined. Where events were given up to stay under max_size, those before the oldest checkpoint are
left out, unless --all is given. --json prints a JSON object per event instead. --check prints what
in the trace disagrees with a replay of its events, one line each, and exits 1 if there is any.
--definitions prints frames, streams, torch modules and parameters instead, by id (build ids in hexadecimal):

    frame ID file=TEXT function=TEXT line=N
    native ID module=TEXT build=HEX address=0xA
    stream ID device=D handle=N
    class NAME-ID class=TEXT
    parameter ID name=TEXT flags=N device=D address=0xA size=N shape=TEXT

Damage is reported on standard error.

For tests: read_trace, replay, check, canonical; format_ring.py has read_ring and ring_events.
"""

import argparse
import json
import re
import struct
import sys
import zlib
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from format_lines import line_of

HEADER_MAX = 4096
INFO_AT = 320
MASK = (1 << 64) - 1
NO_STEP = -(1 << 63)
DEFINITIONS, EVENTS, STEPS, CHECKPOINT = 1, 2, 3, 4  # kinds of chunks
MODULE = 2  # a kind of range
UNKNOWN, INPUT, KV_CACHE = 0, 5, 10  # categories
RANGES_MAX = 1000  # contexts leave out threads with more open ranges
HAS_STEP, NOT_ENDED = 1, 2  # flags of rows and blocks
OPEN, CLOSED = 0, 1  # states of a trace
KINDS = {
    1: "alloc", 2: "free", 3: "tag", 4: "push", 5: "pop", 6: "step",
    16: "mark", 17: "oom", 18: "drop", 19: "reserved", 20: "device_end",
    22: "segment", 23: "segment_end", 24: "sample", 25: "held",
    26: "released",
    27: "holder",
}  # fmt: skip

Status = namedtuple(
    "Status",
    "serial state reason errno flags last_sequence events dropped allocations frees "
    "head tail oldest given_up last_time unfollowed unnamed",
)
STATUS = struct.Struct("<QIIIIQQQQQQQQQQQQ")
Chunk = namedtuple(
    "Chunk",
    "magic kind codec flags sequence size items start end step_first step_last crc header_crc "
    "offset payload",
)
CHUNK_HEADER = struct.Struct("<4sHBBQIIQQqqII")
CHUNK_MAX = 1 << 26

# Context: devices are (device, bytes allocated, most bytes ever), threads {thread: [Range, ...]},
# reserved {device: [bytes, most bytes ever]}.
Context = namedtuple("Context", "step devices step_start module_events threads reserved")
Range = namedtuple("Range", "name kind start")  # an open range; name is a string id
Address = namedtuple("Address", "device address live")
EventsChunk = namedtuple("EventsChunk", "context addresses events totals alive rows")
Row = namedtuple(
    "Row",
    "ordinal flags step device start duration peak peak_after bytes_at_end "
    "allocations frees allocated_bytes freed_bytes reserved_peak reserved_at_end",
    defaults=[None, None],  # not known
)
# A live block; context is [(name, kind), ...] of its ranges, outermost first. None: not known.
Block = namedtuple(
    "Block",
    "size time stack context thread flags step category name serial stream requested",
    defaults=[None] * 11,
)
TOTALS = ("events", "allocations", "frees", "dropped", "rows", "replaced", "unmatched_frees")
# What totals say of live blocks: all, those that the writer himself could not follow.
Alive = namedtuple("Alive", "all unknown")
# Checkpoint: blocks are {(device, address): Block}.
Checkpoint = namedtuple("Checkpoint", "context totals rows blocks segments alive")
Segment = namedtuple("Segment", "device size time serial stack context thread flags step")
Segments = namedtuple("Segments", "begun alive")  # how many ever; {(kind, address): Segment}


class FormatError(Exception):
    """The bytes do not follow the format."""


# --- numbers and text ---------------------------------------------------------------------------


class Cursor:
    """Reads numbers and bytes one after the other; true while something is left."""

    def __init__(self, data: bytes):
        self.data = data
        self.at = 0

    def __bool__(self) -> bool:
        return self.at < len(self.data)

    def varint(self) -> int:
        number = 0
        for shift in range(0, 70, 7):
            if self.at >= len(self.data):
                raise FormatError("a number is cut or missing")
            byte = self.data[self.at]
            self.at += 1
            number |= (byte & 127) << shift
            if byte < 128 and number <= MASK:
                return number
        raise FormatError("a number does not fit 64 bits")

    def zigzag(self) -> int:
        number = self.varint()
        return (number >> 1) ^ -(number & 1)

    def varints(self, count: int) -> list[int]:
        return [self.varint() for _ in range(count)]

    def count(self) -> range:
        """For a loop over entries that follow their number; a section that is absent has none."""
        return range(self.varint() if self.data else 0)

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise FormatError("a length goes past the end")
        self.at += size
        return self.data[self.at - size : self.at]

    def body(self) -> "Cursor":
        """The bytes that follow their length."""
        return Cursor(self.take(self.varint()))

    def text(self) -> str:
        """All that is left."""
        return text_of(self.take(len(self.data) - self.at))

    def finish(self) -> None:
        if self:
            raise FormatError("bytes are left over")


def text_of(data: bytes) -> str:
    """Text as the program gave it; bytes that are no UTF-8 survive a round trip."""
    return data.decode("utf-8", "surrogateescape")


# --- parts of the file --------------------------------------------------------------------------


def parse_status(data: bytes) -> Status:
    """The status that counts; all zeros when neither slot is valid."""
    valid = [Status(*[0] * len(Status._fields))]
    for at in (64, 192):
        if zlib.crc32(data[at : at + 124]) == struct.unpack_from("<I", data, at + 124)[0]:
            valid.append(Status(*STATUS.unpack_from(data, at)))
    return max(valid, key=lambda status: status.serial)


def parse_info(data: bytes) -> dict[str, str] | None:
    """The info text's keys and values; None when its CRC is wrong."""
    (header,) = struct.unpack_from("<I", data, 12)
    length, crc = struct.unpack_from("<II", data, 32)
    text = data[INFO_AT : INFO_AT + length]
    if not INFO_AT + length <= header <= HEADER_MAX or header % 8:
        return None
    if zlib.crc32(data[:36] + text) != crc:
        return None
    pairs = (line.partition("=") for line in text_of(text).split("\n") if "=" in line)
    escapes = {"\\n": "\n", "\\\\": "\\"}
    return {k: re.sub(r"\\[n\\]", lambda found: escapes[found[0]], v) for k, _, v in pairs}


def parse_chunk(data: bytes, offset: int) -> Chunk | None:
    """The chunk whose header stands at `offset`, or None when there is no valid one."""
    header = data[offset : offset + CHUNK_HEADER.size]
    if offset % 8 or len(header) < CHUNK_HEADER.size or header[:4] != b"TMKC":
        return None
    chunk = Chunk(*CHUNK_HEADER.unpack(header), offset, b"")
    if zlib.crc32(header[:60]) != chunk.header_crc or chunk.size > CHUNK_MAX:
        return None
    begin = offset + CHUNK_HEADER.size
    return chunk._replace(payload=data[begin : begin + chunk.size])


def scan_chunks(data: bytes) -> list[Chunk]:
    """All chunks with a valid header, in the order of the file."""
    whole = parse_info(data) is not None
    chunks, offset = [], struct.unpack_from("<I", data, 12)[0] if whole else INFO_AT
    while 0 <= offset < len(data):
        chunk = parse_chunk(data, offset)
        if chunk:
            chunks.append(chunk)
            offset += CHUNK_HEADER.size + (chunk.size + 7) // 8 * 8
        else:
            offset = data.find(b"TMKC", offset + 1)
    return chunks


def sections_of(payload: bytes) -> dict[int, bytes]:
    """The sections of an events or checkpoint payload by id."""
    sections: dict[int, bytes] = {}
    cursor, previous = Cursor(payload), -1
    while cursor:
        number, body = cursor.varint(), cursor.body()
        if number <= previous:
            raise FormatError("sections are not in ascending order")
        sections[number] = body.data
        previous = number
    return sections


def parse_context(cursor: Cursor, reserved: Cursor, chunk: Chunk) -> Context:
    """Sections 2 and 7 of an events chunk or checkpoint, ages turned into times."""
    devices = [tuple(cursor.varints(3)) for _ in cursor.count()]
    age, module_events = cursor.varints(2)
    threads = {}
    for _ in cursor.count():
        thread = cursor.varint()
        ranges = [cursor.varints(2) for _ in cursor.count()]
        threads[thread] = [Range(name >> 2, name & 3, chunk.start - age) for name, age in ranges]
    cursor.finish()
    held = {}
    while reserved:
        device = reserved.varint()
        held[device] = reserved.varints(2)
    return Context(chunk.step_first, devices, chunk.start - age, module_events, threads, held)


# --- events -------------------------------------------------------------------------------------


def named(strings: dict[int, str], name: int) -> dict:
    """The fields of a name."""
    return {"name_id": name, "name": strings.get(name) if name else None}


def parse_addresses(cursor: Cursor) -> list[Address]:
    """Section 3 of an events chunk."""
    entries, high = [], 0
    count = cursor.count()
    shift = cursor.varint() if cursor else 0
    if shift > 63:
        raise FormatError("shift of addresses is too large")
    for _ in count:
        device, high = cursor.varint(), (high + cursor.zigzag()) & MASK
        entries.append(Address(device, high << shift & MASK, cursor.varint()))
    cursor.finish()
    return entries


def parse_threads(cursor: Cursor, items: int) -> list[int]:
    """Section 1 of an events chunk: the thread of each event."""
    threads: list[int] = []
    while cursor:
        thread, count = cursor.varints(2)
        if count > items - len(threads):
            raise FormatError("more threads than events")
        threads += [thread] * count
    return threads


class EventDecoder:
    """Decodes one events chunk."""

    def __init__(self, strings: dict[int, str], chunk: Chunk):
        self.strings = strings
        self.chunk = chunk
        self.sections = sections_of(chunk.payload)
        self.addresses = parse_addresses(self.section(3))
        shapes = self.section(4)
        self.shapes = [shapes.varints(2) for _ in shapes.count()]  # sizes and stacks
        shapes.finish()
        streams = self.section(6)
        self.streams = streams.varints(len(self.shapes)) if streams else [0] * len(self.shapes)
        asked = self.section(38)
        self.requested = asked.varints(len(self.shapes)) if asked else [0] * len(self.shapes)
        self.data = [self.section(16 + kind) for kind in range(8)]

    def section(self, number: int) -> Cursor:
        return Cursor(self.sections.get(number, b""))

    def decode(self) -> EventsChunk:
        context = parse_context(self.section(2), self.section(7), self.chunk)
        totals, alive = parse_totals(self.section(32))
        rows = list(parse_rows(self.section(33)))
        try:
            return EventsChunk(context, self.addresses, self.events(), totals, alive, rows)
        except IndexError:
            raise FormatError("an index is out of range") from None

    def events(self) -> list[dict]:
        heads, items = self.section(5), self.chunk.items
        events, now = [], self.chunk.start
        for thread in parse_threads(self.section(1), min(items, len(heads.data))):
            head = heads.varint()
            now = (now + (head >> 3)) & MASK
            kind, fields = self.other() if head & 7 == 7 else self.plain(head & 7)
            events.append({"kind": kind, "time_ns": now, "thread": thread, **fields})
        if len(events) != items or heads or any(self.data):
            raise FormatError("the number of events is not that of their data")
        return events

    def place(self, data: Cursor) -> dict:
        entry = self.addresses[data.varint()]
        return {"device": entry.device, "address": entry.address}

    def plain(self, kind: int) -> tuple[str, dict]:
        """The next event of kind 1 to 6: its kind's name and its fields."""
        data = self.data[kind]
        if kind == 0:
            raise FormatError("event of kind 0")
        fields = self.place(data) if kind <= 3 else {}
        if kind == 1:
            shape = data.varint()
            fields["size"], fields["stack"] = self.shapes[shape]
            fields["stream"] = self.streams[shape]
            fields["requested"] = self.requested[shape]
        elif kind == 3:
            fields |= {"category": data.varint(), **named(self.strings, data.varint())}
        elif kind == 4:
            number = data.varint()
            fields = {"range_kind": number & 3, **named(self.strings, number >> 2)}
        elif kind == 5:
            fields["range_kind"] = data.varint()
        elif kind == 6:
            fields["step"] = data.zigzag()
        return KINDS[kind], fields

    def other(self) -> tuple[str, dict]:
        """The next event of kind 7."""
        number, body = self.data[7].varint(), self.data[7].body()
        if number == 16:
            fields = {**named(self.strings, body.varint()), "info": body.text()}
        elif number == 17:
            fields = dict(zip(("device", "requested", "capacity", "stack"), body.varints(4)))
            fields["free"] = body.varint() - 1 if body else None
        elif number == 18:
            fields = {"count": body.varint()}
        elif number == 19:
            fields = dict(zip(("device", "bytes"), body.varints(2)))
        elif number == 20:
            fields = {"device": body.varint()}
        elif number in (22, 23):
            names = ("device", "segment_kind", "address", "size", "stack")[: 5 if number == 22 else 3]
            fields = dict(zip(names, body.varints(len(names))))
        elif number == 24:
            device, *numbers = body.varints(5)
            fields = {"device": device}
            fields.update(zip(("used", "total", "own", "others"), ((n - 1) & MASK for n in numbers)))
        elif number in (25, 26):
            names = ("device", "address", "size")[: 3 if number == 25 else 2]
            fields = dict(zip(names, body.varints(len(names))))
        elif number == 27:
            fields = dict(zip(("device", "address", "flags"), body.varints(3)))
            fields |= named(self.strings, body.varint())
        else:
            return "other", {"type": number, "body": body.data.hex()}
        return KINDS[number], fields


# --- steps and checkpoints ----------------------------------------------------------------------


def parse_rows(cursor: Cursor) -> Iterator[Row]:
    """Rows one after the other."""
    while cursor:
        body = cursor.body()
        fields = [body.varint(), body.varint(), body.zigzag(), *body.varints(10)]
        yield Row(*fields, *body.varints(2 if body else 0))


def parse_totals(cursor: Cursor) -> tuple[dict[str, int] | None, Alive | None]:
    """Section 32; None where it does not say."""
    totals = dict(zip(TOTALS, cursor.varints(len(TOTALS)))) if cursor else None
    return totals, Alive(*cursor.varints(2)) if cursor else None


def parse_contexts(cursor: Cursor) -> list[list[tuple[int, int]]]:
    """Section 34 of a checkpoint: contexts as in Block; the first is that of no range."""
    contexts: list[list[tuple[int, int]]] = [[]]
    for _ in cursor.count():
        parent, name = cursor.varints(2)
        contexts.append(contexts[parent] + [(name >> 2, name & 3)])
    cursor.finish()
    return contexts


def parse_blocks(
    cursor: Cursor, streams: Cursor, requested: Cursor, contexts: list, start: int
) -> dict[tuple[int, int], Block]:
    """Sections 35, 36 and 38 of a checkpoint."""
    blocks, address, has_streams, has_requested = {}, 0, bool(streams), bool(requested)
    for _ in cursor.count():
        device, address = cursor.varint(), (address + cursor.zigzag()) & MASK
        size, age, stack, context, thread, flags = cursor.varints(6)
        blocks[device, address] = Block(
            size, start - age, stack, contexts[context], thread, flags, cursor.zigzag(),
            *cursor.varints(3), streams.varint() if has_streams else 0,
            requested.varint() if has_requested else 0,
        )  # fmt: skip
    cursor.finish()
    return blocks


def parse_brief_blocks(cursor: Cursor) -> dict[tuple[int, int], Block]:
    """Section 39 of a checkpoint."""
    entries = parse_addresses(cursor)
    return {(device, address): Block(live - 1) for device, address, live in entries}


def parse_segments(cursor: Cursor, contexts: list, start: int) -> Segments:
    """Section 37 of a checkpoint."""
    begun, alive = cursor.varint() if cursor else 0, {}
    while cursor:
        device, kind, address, size, age, serial, stack, context, thread, flags = cursor.varints(10)
        alive[kind, address] = Segment(
            device, size, start - age, serial, stack, contexts[context], thread, flags, cursor.zigzag()
        )  # fmt: skip
    return Segments(begun, alive)


def parse_checkpoint(chunk: Chunk) -> Checkpoint:
    """Decodes a checkpoint chunk."""
    sections = sections_of(chunk.payload)
    cursors = {number: Cursor(sections.get(number, b"")) for number in (2, 7, *range(32, 40))}
    context = parse_context(cursors[2], cursors[7], chunk)
    totals, alive = parse_totals(cursors[32])
    if totals is None:
        raise FormatError("a checkpoint without totals")
    rows = list(parse_rows(cursors[33]))
    try:
        contexts = parse_contexts(cursors[34])
        blocks = parse_blocks(cursors[35], cursors[36], cursors[38], contexts, chunk.start)
        blocks |= parse_brief_blocks(cursors[39])
        segments = parse_segments(cursors[37], contexts, chunk.start)
    except IndexError:
        raise FormatError("a context does not exist") from None
    return Checkpoint(context, totals, rows, blocks, segments, alive)


# --- the trace ----------------------------------------------------------------------------------


@dataclass
class Trace:
    """A trace; `chunks` are those that count, in the order of their sequence numbers."""

    trace_id: str
    info: dict[str, str]
    status: Status
    chunks: list[Chunk]
    last_sequence: int  # of the last chunk known of
    limited: bool  # whether events and checkpoints behind it were left out
    problems: list[str]
    strings: dict[int, str] = field(default_factory=dict)
    frames: dict[int, list[int]] = field(default_factory=dict)  # file, function, line
    stacks: dict[int, list[int]] = field(default_factory=dict)  # frames, innermost first
    threads: dict[int, tuple[int, str]] = field(default_factory=dict)  # id of the system, name
    codes: dict[int, list[int]] = field(default_factory=dict)  # file, function, first line, layout
    lines: dict[int, list] = field(default_factory=dict)  # by code: parts (offset, [length,] bytes)
    code_frames: dict[int, list[int]] = field(default_factory=dict)  # code, offset
    modules: dict[int, tuple[bytes, str]] = field(default_factory=dict)  # build id, path
    native_frames: dict[int, list[int]] = field(default_factory=dict)  # module, address
    streams: dict[int, list[int]] = field(default_factory=dict)  # device, handle
    classes: dict[int, int] = field(default_factory=dict)  # of torch modules, by name
    tail: int | None = None  # the last step, which was none
    parameters: dict[int, tuple] = field(default_factory=dict)  # numbers, dtype and shape
    rows: dict[int, Row] = field(default_factory=dict)  # by ordinal
    checkpoints: dict[int, Checkpoint] = field(default_factory=dict)  # by sequence number

    @property
    def replay_from(self) -> int:
        """The sequence number at which replay begins."""
        if self.status.given_up and self.checkpoints:
            return min(self.checkpoints)
        return max(1, self.status.oldest)

    def report(self, problem: str) -> None:
        """Notes a problem once."""
        if problem not in self.problems:
            self.problems.append(problem)

    def decode(self, chunk: Chunk) -> EventsChunk | None:
        """A decoded events chunk; None when its codec is unknown or its payload makes no sense."""
        try:
            return None if chunk.codec else EventDecoder(self.strings, chunk).decode()
        except FormatError as error:
            self.report(f"chunk {chunk.sequence}: {error}")
            return None

    def events(self, everything: bool = False) -> Iterator[dict]:
        """Events in order; from where replay begins unless `everything` is asked for."""
        for chunk in self.chunks:
            if chunk.kind == EVENTS and (everything or chunk.sequence >= self.replay_from):
                decoded = self.decode(chunk)
                yield from decoded.events if decoded else ()

    def keep(self, what: str, table: dict, key: int, value) -> None:
        """Adds a definition or a row, which may come again but not change."""
        if table.setdefault(key, value) != value:
            self.report(f"{what} {key} has changed")

    def define(self, kind: int, number: int, value) -> None:
        """Adds a definition of a known type."""
        tables = {
            1: self.strings, 2: self.frames, 3: self.stacks, 4: self.threads, 5: self.codes,
            7: self.code_frames, 8: self.modules, 9: self.native_frames, 10: self.streams,
            12: self.parameters,
        }  # fmt: skip
        if kind in (6, 13):
            self.lines.setdefault(number, []).append(value)
        elif kind == 11:
            self.classes[number] = value  # the last counts
        elif kind == 14:
            self.tail = number
        elif kind in tables:
            self.keep(f"definition of type {kind}:", tables[kind], number, value)


    def definitions(self) -> Iterator[str]:
        """The lines of --definitions."""
        for number, (file, function, line) in sorted((self.frames | self.python_frames()).items()):
            names = [quote(self.strings.get(name) if name else None) for name in (file, function)]
            yield f"frame {number} file={names[0]} function={names[1]} line={line}"
        for number, (module, address) in sorted(self.native_frames.items()):
            build, path = self.modules.get(module, (b"", None))
            yield f"native {number} module={quote(path)} build={build.hex()} address={address:#x}"
        for number, (device, handle) in sorted(self.streams.items()):
            yield f"stream {number} device={device} handle={handle}"
        for number, name in sorted(self.classes.items()):
            if number in self.strings and name in self.strings:
                yield f"class {number} class={quote(self.strings[name])}"
        for number, (numbers, shape) in sorted(self.parameters.items()):
            name, flags, device, address, size = numbers
            yield (
                f"parameter {number} name={quote(self.strings.get(name))} flags={flags} "
                f"device={device} address={address:#x} size={size} shape={quote(shape)}"
            )

    def python_frames(self) -> dict[int, list[int]]:
        """Code frames as those of type 2."""
        frames = {}
        for number, (code, offset) in self.code_frames.items():
            file, function, first, layout = self.codes.get(code, (0, 0, 0, 0))
            line = line_of(layout, first, self.lines.get(code, []), offset)
            frames[number] = [file, function, line]
        return frames


def parse_definitions(cursor: Cursor) -> Iterator[tuple]:
    """Type, id and meaning of definitions one after the other."""
    while cursor:
        kind, body = cursor.varint(), cursor.body()
        number, value = body.varint() if 1 <= kind <= 14 else 0, None
        if kind == 1:
            value = body.text()
        elif kind == 2:
            value = body.varints(3)
        elif kind == 3:
            value = []
            while body:
                value.append(body.varint())
        elif kind == 4:
            value = (body.varint(), body.text())
        elif kind == 5:
            value = body.varints(4)
        elif kind == 6:
            value = (body.varint(), body.take(len(body.data) - body.at))
        elif kind == 13:
            value = (*body.varints(2), body.take(len(body.data) - body.at))
        elif kind == 8:
            value = (body.take(body.varint()), body.text())
        elif kind in (7, 9, 10):
            value = body.varints(2)
        elif kind == 11:
            value = body.varint()
        elif kind == 12:
            value = (body.varints(5), body.text())
        yield kind, number, value


def add_items(trace: Trace, chunk: Chunk) -> int:
    """Takes what is kept of a chunk: all but events, which are decoded when they are needed."""
    cursor, count = Cursor(chunk.payload), 0
    if chunk.kind == DEFINITIONS:
        for count, definition in enumerate(parse_definitions(cursor), 1):
            trace.define(*definition)
    elif chunk.kind == STEPS:
        for count, row in enumerate(parse_rows(cursor), 1):
            trace.keep("row", trace.rows, row.ordinal, row)
    elif chunk.kind == CHECKPOINT:
        trace.checkpoints[chunk.sequence] = checkpoint = parse_checkpoint(chunk)
        count = sum(block.serial is not None for block in checkpoint.blocks.values())
    else:
        count = chunk.items
    return count


def add_chunk(trace: Trace, chunk: Chunk) -> None:
    """Adds a plain chunk's items; notes what is wrong with them."""
    try:
        count = chunk.items if chunk.codec else add_items(trace, chunk)
        if count != chunk.items:
            trace.report(f"chunk {chunk.sequence}: {count} items, header says {chunk.items}")
    except FormatError as error:
        trace.report(f"chunk {chunk.sequence}: {error}")


def counting_chunks(found: list[Chunk], oldest: int, problems: list[str]) -> list[Chunk]:
    """The chunks that count, by sequence number."""
    chunks: dict[int, Chunk] = {}
    for chunk in found:
        if chunk.sequence < oldest:
            continue
        if len(chunk.payload) != chunk.size or zlib.crc32(chunk.payload) != chunk.crc:
            problems.append(f"chunk {chunk.sequence} at {chunk.offset}: CRC is wrong")
        elif chunks.setdefault(chunk.sequence, chunk) is not chunk:
            problems.append(f"chunk {chunk.sequence}: comes again at {chunk.offset}")
    return [chunks[sequence] for sequence in sorted(chunks)]


def report_gaps(trace: Trace) -> None:
    """Notes the sequence numbers that are missing."""
    expected = max(1, trace.status.oldest)
    for sequence in [chunk.sequence for chunk in trace.chunks] + [trace.last_sequence + 1]:
        if sequence > expected:
            trace.report(f"chunks {expected} to {sequence - 1} are missing")
        expected = sequence + 1


def read_trace(path, until: int = MASK) -> Trace:
    """Reads a trace; damage is in `problems`. Raises FormatError when it is no trace at all.

    Events and checkpoints count up to chunk `until`, definitions and rows wherever they are: in a
    file that is written round they may have moved behind it.
    """
    data = Path(path).read_bytes()
    if len(data) < INFO_AT or data[:12] != struct.pack("<8sI", b"TIDEMARK", 1):
        raise FormatError("not a trace of version 1")
    info, status = parse_info(data), parse_status(data)
    problems = [] if info is not None else ["header: CRC is wrong, the info is lost"]
    if not status.serial:
        problems.append("header: no valid status")
    found = counting_chunks(scan_chunks(data), status.oldest, problems)
    chunks = [chunk for chunk in found if chunk.sequence <= until]
    last = min(until, max([status.last_sequence] + [chunk.sequence for chunk in found]))
    trace = Trace(data[16:32].hex(), info or {}, status, chunks, last, until < MASK, problems)
    report_gaps(trace)
    for chunk in found:
        if chunk.sequence <= until or chunk.kind in (DEFINITIONS, STEPS):
            add_chunk(trace, chunk)
    return trace


# --- replay: what the events mean ---------------------------------------------------------------


@dataclass
class Device:
    """What is known of a device, and its part of the current step."""

    live: int = 0
    most: int = 0
    peak: int = 0
    peak_after: int = 0
    allocations: int = 0
    frees: int = 0
    allocated: int = 0
    freed: int = 0
    reserved: int | None = None  # not known
    reserved_most: int = 0
    reserved_peak: int | None = None  # in the step


@dataclass
class Replay:
    """The state after some events, and what in the trace disagreed with it on the way."""

    problems: list[str] = field(default_factory=list)
    time: int = 0
    totals: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TOTALS, 0))
    devices: dict[int, Device] = field(default_factory=dict)  # in order of first occurrence
    blocks: dict[tuple[int, int], Block] = field(default_factory=dict)
    segments: Segments = field(default_factory=lambda: Segments(0, {}))
    threads: dict[int, list[Range]] = field(default_factory=dict)
    step: int = NO_STEP
    step_start: int = 0
    module_events: int = 0
    rows: dict[int, Row] = field(default_factory=dict)  # of ended steps, by ordinal
    exact: bool = True  # False from a lost chunk on until the next checkpoint
    counted: bool = True  # whether totals and rows are right, as they are where chunks have them
    unknown: int = 0  # live blocks that are not in `blocks`
    partial: bool = False  # whether we or a writer have ever had such ones

    def step_and_flags(self) -> tuple[int, int]:
        """The step in force as rows and blocks have it."""
        return (0, 0) if self.step == NO_STEP else (self.step, HAS_STEP)

    def step_rows(self, flags: int) -> dict[int, Row]:
        """The rows of the current step by ordinal, as if it went until the last event."""
        step, has_step = self.step_and_flags()
        rows, ordinal = {}, self.totals["rows"]
        for number, use in self.devices.items():
            ordinal += 1
            rows[ordinal] = Row(
                ordinal, flags | has_step, step, number, self.step_start,
                self.time - self.step_start, use.peak, use.peak_after, use.live,
                use.allocations, use.frees, use.allocated, use.freed,
                use.reserved_peak, use.reserved,
            )  # fmt: skip
        return rows

    def context(self) -> Context:
        """What a context would say now."""
        devices = [(number, use.live, use.most) for number, use in self.devices.items()]
        known = {thread: r for thread, r in self.threads.items() if 0 < len(r) <= RANGES_MAX}
        held = {
            number: [use.reserved, use.reserved_most]
            for number, use in self.devices.items()
            if use.reserved is not None
        }
        return Context(self.step, devices, self.step_start, self.module_events, known, held)

    # What events do.

    def apply(self, event: dict) -> None:
        """Takes one event into account."""
        if event["time_ns"] < self.time:
            self.problems.append(f"times decrease from {self.time} to {event['time_ns']}")
        self.time = event["time_ns"]
        self.totals["events"] += 1
        action = getattr(self, "on_" + event["kind"], None)
        if action:
            action(event)

    def on_alloc(self, event: dict) -> None:
        device = self.devices.setdefault(event["device"], Device())
        self.totals["allocations"] += 1
        self.totals["replaced"] += self.remove_block(event, device)
        self.blocks[event["device"], event["address"]] = self.new_block(event)
        device.allocations += 1
        device.allocated = (device.allocated + event["size"]) & MASK
        device.live = (device.live + event["size"]) & MASK
        device.most = max(device.most, device.live)
        if device.live > device.peak:
            device.peak, device.peak_after = device.live, self.time - self.step_start

    def on_free(self, event: dict) -> None:
        device = self.devices.setdefault(event["device"], Device())
        device.frees += 1
        self.totals["frees"] += 1
        if self.remove_block(event, device):
            return
        self.totals["unmatched_frees"] += not self.unknown
        self.unknown -= bool(self.unknown)

    def new_block(self, event: dict) -> Block:
        """The block of an allocation."""
        context = [(opened.name, opened.kind) for opened in self.threads.get(event["thread"], [])]
        step, flags = self.step_and_flags()
        return Block(
            event["size"], self.time, event["stack"], context, event["thread"], flags, step,
            category=0, name=0, serial=self.totals["allocations"], stream=event["stream"],
            requested=event["requested"],
        )  # fmt: skip

    def remove_block(self, event: dict, device: Device) -> bool:
        """Removes the block at an event's address; False when there is none."""
        block = self.blocks.pop((event["device"], event["address"]), None)
        if not block:
            return False
        device.live = (device.live - block.size) & MASK
        device.freed = (device.freed + block.size) & MASK
        return True

    def on_tag(self, event: dict) -> None:
        key = (event["device"], event["address"])
        known = self.blocks[key].category if key in self.blocks else None
        if event["category"] in (INPUT, KV_CACHE) and known not in (None, UNKNOWN, INPUT):
            return  # a hint: the block is something else
        if key in self.blocks:
            category, name = event["category"], event["name_id"]
            self.blocks[key] = self.blocks[key]._replace(category=category, name=name)

    def on_push(self, event: dict) -> None:
        opened = Range(event["name_id"], event["range_kind"], self.time)
        self.threads.setdefault(event["thread"], []).append(opened)
        self.module_events += opened.kind == MODULE

    def on_pop(self, event: dict) -> None:
        ranges = self.threads.get(event["thread"], [])
        for at in reversed(range(len(ranges))):
            if ranges[at].kind == event["range_kind"]:
                self.module_events += ranges[at].kind == MODULE
                del ranges[at:]
                return

    def on_step(self, event: dict) -> None:
        if self.counted:
            rows = self.step_rows(flags=0)
            self.rows.update(rows)
            self.totals["rows"] += len(rows)
        self.step, self.step_start, self.module_events = event["step"], self.time, 0
        for number, device in self.devices.items():
            self.devices[number] = Device(
                device.live, device.most, peak=device.live, reserved=device.reserved,
                reserved_most=device.reserved_most, reserved_peak=device.reserved,
            )  # fmt: skip

    def on_drop(self, event: dict) -> None:
        self.totals["dropped"] += event["count"]

    def on_reserved(self, event: dict) -> None:
        device = self.devices.setdefault(event["device"], Device())
        device.reserved = event["bytes"]
        device.reserved_most = max(device.reserved_most, device.reserved)
        device.reserved_peak = max(device.reserved_peak or 0, device.reserved)

    def on_segment(self, event: dict) -> None:
        context = [(opened.name, opened.kind) for opened in self.threads.get(event["thread"], [])]
        begun = self.segments.begun + 1
        step, flags = self.step_and_flags()
        self.segments.alive[event["segment_kind"], event["address"]] = Segment(
            event["device"], event["size"], self.time, begun, event["stack"], context, event["thread"], flags, step
        )  # fmt: skip
        self.segments = Segments(begun, self.segments.alive)

    def on_segment_end(self, event: dict) -> None:
        self.segments.alive.pop((event["segment_kind"], event["address"]), None)

    def on_device_end(self, event: dict) -> None:
        device = self.devices.get(event["device"])
        if not device:
            return
        device.freed = (device.freed + device.live) & MASK
        device.live = 0
        if not any(other.live for other in self.devices.values()):
            self.unknown = 0
        for key in [key for key in self.blocks if key[0] == event["device"]]:
            del self.blocks[key]

    # What chunks say themselves: taken over after a loss, else compared.

    def take_context(self, context: Context) -> None:
        self.step, devices, self.step_start, self.module_events, threads, held = context
        self.threads = {thread: list(ranges) for thread, ranges in threads.items()}
        self.devices = {number: Device(live, most, peak=live) for number, live, most in devices}
        for number, (reserved, most) in held.items():
            device = self.devices.setdefault(number, Device())
            device.reserved = device.reserved_peak = reserved
            device.reserved_most = most

    def take_addresses(self, addresses: list[Address], alive: Alive | None) -> None:
        for device, address, live in addresses:
            block = self.blocks.get((device, address))
            if live and not (block and block.size == live - 1):
                self.blocks[device, address] = Block(live - 1)
            elif not live and not (alive and alive.unknown):
                self.blocks.pop((device, address), None)

    def take_listed(self, addresses: list[Address]) -> None:
        """Blocks that are alive unknown become known where a chunk is about them."""
        for device, address, live in addresses:
            if self.unknown and live and (device, address) not in self.blocks:
                self.blocks[device, address] = Block(live - 1)
                self.unknown -= 1

    def take_alive(self, alive: Alive | None) -> None:
        self.unknown = max(0, alive.all - len(self.blocks)) if alive else 0
        self.partial |= self.unknown > 0

    def take_checkpoint(self, checkpoint: Checkpoint) -> None:
        self.take_context(checkpoint.context)
        self.blocks = dict(checkpoint.blocks)
        self.segments = Segments(checkpoint.segments.begun, dict(checkpoint.segments.alive))
        self.take_figures(checkpoint.totals, checkpoint.rows)
        self.take_alive(checkpoint.alive)
        self.exact = True

    def take_figures(self, totals: dict[str, int] | None, rows: list[Row]) -> None:
        """Totals and the rows of the step in force."""
        self.counted = totals is not None
        self.totals = dict(totals or self.totals)
        for row in rows:
            self.time = row.start + row.duration
            device = self.devices.setdefault(row.device, Device())
            device.peak, device.peak_after = row.peak, row.peak_after
            device.allocations, device.frees = row.allocations, row.frees
            device.allocated, device.freed = row.allocated_bytes, row.freed_bytes
            device.reserved_peak = row.reserved_peak

    def same(self, what: str, found, expected) -> None:
        if found != expected:
            self.problems.append(f"{what}: trace says {found}, replay says {expected}")

    def same_tables(self, what: str, found: dict, expected: dict) -> None:
        for key in sorted(found.keys() | expected.keys()):
            self.same(f"{what} {key}", found.get(key), expected.get(key))

    def compare_addresses(self, where: str, addresses: list[Address]) -> None:
        for device, address, live in addresses:
            block = self.blocks.get((device, address))
            expected = block.size + 1 if block else 0
            self.same(f"{where}: live at {address:#x} on {device}", live, expected)

    def compare_checkpoint(self, where: str, checkpoint: Checkpoint) -> None:
        self.same(f"{where}: context", checkpoint.context, self.context())
        self.same(f"{where}: totals", checkpoint.totals, self.totals)
        for key in sorted(checkpoint.blocks.keys() | self.blocks.keys()):
            self.compare_block(f"{where}: block {key}", checkpoint, key)
        self.same(f"{where}: segments that began", checkpoint.segments.begun, self.segments.begun)
        self.same_tables(f"{where}: segment", checkpoint.segments.alive, self.segments.alive)
        rows = {row.ordinal: row for row in checkpoint.rows}
        self.same_tables(f"{where}: row", rows, self.step_rows(NOT_ENDED))

    def compare_block(self, what: str, checkpoint: Checkpoint, key: tuple[int, int]) -> None:
        """Of a block without details the size is all that there is to compare."""
        found, expected = checkpoint.blocks.get(key), self.blocks.get(key)
        is_left_out = not found and len(checkpoint.blocks) < checkpoint.alive.all
        if found and expected and not (found.serial and expected.serial):
            self.same(f"{what}: size", found.size, expected.size)
        elif not is_left_out:
            self.same(what, found, expected)

    def compare_status(self, trace: Trace) -> None:
        """After the last chunk that the status knows. Of an open trace its totals may be older."""
        status = trace.status
        if status.state != OPEN:
            for name in ("events", "allocations", "frees", "dropped"):
                self.same(f"status: {name}", getattr(status, name), self.totals[name])
            self.same("status: time of the last event", status.last_time, self.time)
        chunks = [chunk for chunk in trace.chunks if chunk.sequence <= status.last_sequence]
        left = sum(chunk.items for chunk in chunks if chunk.kind == EVENTS)
        if not trace.problems:
            self.same("status: events given up", status.given_up, self.totals["events"] - left)

    # Chunks.

    def apply_events(self, chunk: Chunk, decoded: EventsChunk) -> None:
        where = f"chunk {chunk.sequence}"
        self.partial |= self.unknown > 0 or bool(decoded.alive and decoded.alive.unknown)
        if self.exact:
            self.take_listed(decoded.addresses)
            self.same(f"{where}: context", decoded.context, self.context())
            self.compare_addresses(where, decoded.addresses)
            self.compare_figures(where, decoded)
        else:
            self.take_context(decoded.context)
            self.take_addresses(decoded.addresses, decoded.alive)
            self.take_figures(decoded.totals, decoded.rows)
            self.take_alive(decoded.alive)
        for event in decoded.events:
            self.apply(event)
        if decoded.events:
            self.same(f"{where}: start", chunk.start, decoded.events[0]["time_ns"])
            self.same(f"{where}: end", chunk.end, self.time)
        self.same(f"{where}: step at the end", chunk.step_last, self.step)

    def compare_figures(self, where: str, decoded: EventsChunk) -> None:
        """Totals, live blocks and rows of the step, as the chunk has them."""
        if decoded.totals is None:
            return
        self.same(f"{where}: totals", decoded.totals, self.totals)
        self.same(f"{where}: live blocks", decoded.alive.all, len(self.blocks) + self.unknown)
        rows = {row.ordinal: row for row in decoded.rows}
        self.same_tables(f"{where}: row", rows, self.step_rows(NOT_ENDED))

    def apply_chunk(self, trace: Trace, chunk: Chunk) -> None:
        checkpoint = trace.checkpoints.get(chunk.sequence)
        if checkpoint and self.exact:
            self.compare_checkpoint(f"checkpoint {chunk.sequence}", checkpoint)
        elif checkpoint:
            self.take_checkpoint(checkpoint)
        elif chunk.kind == EVENTS:
            decoded = trace.decode(chunk)
            if decoded:
                self.apply_events(chunk, decoded)
            else:
                self.exact = self.counted = False


def replay(trace: Trace) -> Replay:
    """What the trace's events mean: the state at its end."""
    state, expected = Replay(), trace.replay_from
    state.exact = state.counted = not trace.status.given_up
    for chunk in trace.chunks:
        if chunk.sequence < trace.replay_from:
            continue
        if chunk.sequence != expected:
            state.exact = state.counted = False
        expected = chunk.sequence + 1
        state.apply_chunk(trace, chunk)
        if chunk.sequence == trace.status.last_sequence and state.exact:
            state.compare_status(trace)
    if expected <= trace.last_sequence:
        state.exact = False
    return state


def compare_rows(trace: Trace, state: Replay) -> None:
    """The trace's rows against those of a replay that has come to the end."""
    at_end = state.exact and not trace.limited
    opened = state.step_rows(NOT_ENDED) if at_end else {}
    expected = state.rows | opened
    for ordinal in sorted(trace.rows.keys() & expected.keys()):
        state.same(f"row {ordinal}", trace.rows[ordinal], expected[ordinal])
    if trace.problems:
        return
    state.same("rows without a gap", len(trace.rows), max(trace.rows, default=0))
    if at_end and trace.status.state == CLOSED:
        state.same("number of rows", len(trace.rows), state.totals["rows"] + len(opened))


def check(trace: Trace) -> list[str]:
    """Where contexts, dictionaries, checkpoints, rows or status disagree with the replay."""
    state = replay(trace)
    compare_rows(trace, state)
    if trace.status.unfollowed or state.partial:  # contexts and rows are upper bounds only
        return [problem for problem in state.problems if problem.startswith("status")]
    return state.problems


# --- command line -------------------------------------------------------------------------------

LINES = {
    "alloc": "device={device} address={address:#x} size={size} stack={stack} stream={stream} "
    "requested={requested}",
    "free": "device={device} address={address:#x}",
    "tag": "device={device} address={address:#x} category={category} name={name}",
    "push": "range={range_kind} name={name}",
    "pop": "range={range_kind}",
    "step": "step={step}",
    "mark": "name={name} info={info}",
    "oom": "device={device} requested={requested} capacity={capacity} stack={stack} free={free}",
    "held": "device={device} address={address:#x} size={size}",
    "released": "device={device} address={address:#x}",
    "holder": "device={device} address={address:#x} flags={flags} name={name}",
    "drop": "count={count}",
    "reserved": "device={device} bytes={bytes}",
    "device_end": "device={device}",
    "segment": "device={device} kind={segment_kind} address={address:#x} size={size} stack={stack}",
    "segment_end": "device={device} kind={segment_kind} address={address:#x}",
    "sample": "device={device} used={used} total={total} own={own} others={others}",
    "other": "type={type}",
}


def quote(text: str | None) -> str:
    """A text of the canonical form."""
    return "-" if text is None else json.dumps(text, ensure_ascii=False)


def canonical(event: dict) -> str:
    """The canonical line of an event; see the top of this file."""
    quoted = {key: quote(event[key]) for key in ("name", "info") if key in event}
    known = {key: "-" if value is None else value for key, value in event.items()}
    rest = LINES[event["kind"]].format(**{**known, **quoted})
    return f"{event['time_ns']} {event['kind']} thread={event['thread']} {rest}"


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Prints the events of a trace.")
    parser.add_argument("trace")
    parser.add_argument("--all", action="store_true", help="events before the checkpoint too")
    parser.add_argument("--json", action="store_true", help="a JSON object per event")
    parser.add_argument("--check", action="store_true", help="compare with a replay instead")
    parser.add_argument("--definitions", action="store_true", help="definitions instead")
    options = parser.parse_args(arguments)
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")
    try:
        trace = read_trace(options.trace)
    except (FormatError, OSError) as error:
        print(f"{options.trace}: {error}", file=sys.stderr)
        return 2
    form = json.dumps if options.json else canonical
    lines = check(trace) if options.check else map(form, trace.events(everything=options.all))
    if options.definitions:
        lines = trace.definitions()
    for line in lines:
        print(line)
    for problem in trace.problems:
        print(f"{options.trace}: {problem}", file=sys.stderr)
    return 1 if options.check and lines else 0


if __name__ == "__main__":
    sys.exit(main())
