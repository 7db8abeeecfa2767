# SPDX-License-Identifier: MIT
"""What the tests of `export` share: readers of the formats, written from their descriptions alone."""
import os
import pathlib
import struct
import subprocess

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TIDEMARK_BUILD", REPO / "build"))


def tidemark(*arguments, folder=".", status=0, text=True):
    """What it printed; stderr with it where text is asked for as a pair."""
    done = subprocess.run([BUILD / "tidemark", *map(str, arguments)], cwd=folder, text=text,
                          capture_output=True, timeout=120, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout


# ---- torch snapshots

def forwards(trace):
    """(most bytes, {address: size} left) of a device's trace, front to back."""
    live, now, most = {}, 0, 0
    for entry in trace:
        if entry["action"] == "alloc":
            assert entry["addr"] not in live
            live[entry["addr"]] = entry["size"]
            now += entry["size"]
            most = max(most, now)
        elif entry["action"] == "free_completed":
            now -= live.pop(entry["addr"])
    return most, live


class Backwards:
    """As memory_viz goes: from the final segments and blocks to the start of the trace. At every
    moment segments are apart and each block begins in one of them."""

    def __init__(self, snapshot, device):
        self.segments = {}  # address: [size, stream]
        self.blocks = {}
        for segment in snapshot["segments"]:
            if segment["device"] == device:
                self.add(segment["address"], segment["total_size"], segment["stream"])
                at = segment["address"]
                for block in segment["blocks"]:
                    assert block["address"] == at
                    if block["state"] != "inactive":
                        self.blocks[at] = block["size"]
                    at += block["size"]
                assert at == segment["address"] + segment["total_size"]
        self.final = dict(self.blocks)
        self.check()
        for entry in reversed(snapshot["device_traces"][device]):
            getattr(self, entry["action"], lambda entry: None)(entry)

    def holder(self, address):
        for start, (size, _) in self.segments.items():
            if start <= address < start + size:
                return start
        return None

    def check(self):
        order = sorted(self.segments)
        for one, two in zip(order, order[1:]):
            assert one + self.segments[one][0] <= two
        for address in self.blocks:
            assert self.holder(address) is not None, hex(address)

    def add(self, address, size, stream):
        assert size > 0
        assert not any(start < address + size and address < start + length
                       for start, (length, _) in self.segments.items())
        self.segments[address] = [size, stream]

    def segment_alloc(self, entry):
        size, _ = self.segments.pop(entry["addr"])
        assert size == entry["size"]
        self.check()

    def segment_free(self, entry):
        self.add(entry["addr"], entry["size"], entry["stream"])

    def segment_map(self, entry):
        """Cut out of the one that it is in."""
        start = self.holder(entry["addr"])
        size, stream = self.segments.pop(start)
        end, cut = start + size, entry["addr"] + entry["size"]
        assert cut <= end
        if start < entry["addr"]:
            self.add(start, entry["addr"] - start, stream)
        if cut < end:
            self.add(cut, end - cut, stream)
        self.check()

    def segment_unmap(self, entry):
        """Joined to those that it adjoins, if they are of the same stream."""
        start, end = entry["addr"], entry["addr"] + entry["size"]
        for other, (size, stream) in list(self.segments.items()):
            if stream == entry["stream"] and (other + size == start or other == end):
                start, end = min(start, other), max(end, other + size)
                del self.segments[other]
        self.add(start, end - start, entry["stream"])

    def free_completed(self, entry):
        assert entry["addr"] not in self.blocks
        assert self.holder(entry["addr"]) is not None
        self.blocks[entry["addr"]] = entry["size"]

    def alloc(self, entry):
        del self.blocks[entry["addr"]]


# ---- Perfetto

def fields(data):
    """[(number, value)] of a protobuf message; a value is a number or bytes."""
    at, out = 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            out.append((key >> 3, varint()))
        elif key & 7 == 1:
            out.append((key >> 3, struct.unpack_from("<Q", data, at)[0]))
            at += 8
        else:
            assert key & 7 == 2
            n = varint()
            assert at + n <= len(data)
            out.append((key >> 3, data[at:at + n]))
            at += n
    return out


def message(data):
    return dict(fields(data))


class Perfetto:
    """Tracks by id, {track: [(time, value)]} of counters, [(track, start, end, name, depth)] of
    slices in order of their ends, [(track, time, name, notes)] of instants."""

    def __init__(self, data):
        self.tracks, self.counters, self.slices, self.instants = {}, {}, [], []
        self.names, self.open, self.is_cleared = {}, {}, set()
        for number, packet in fields(data):
            assert number == 1
            self.packet(message(packet))
        assert not any(self.open.values())

    def packet(self, packet):
        sequence = packet[10]
        if packet[13] & 1:
            assert sequence not in self.is_cleared
            self.is_cleared.add(sequence)
        assert sequence in self.is_cleared
        if 60 in packet:
            self.track(message(packet[60]))
        for number, value in fields(packet.get(12, b"")):
            assert number == 2
            name = message(value)
            self.names[sequence, name[1]] = name[2].decode()
        if 11 in packet:
            self.event(sequence, packet[8], packet[11])

    def track(self, track):
        kind = next((kind for kind in (3, 4, 8) if kind in track), None)
        self.tracks[track[1]] = {
            "name": track[2].decode(), "parent": track.get(5),
            "kind": {3: "process", 4: "thread", 8: "counter", None: "plain"}[kind],
            "owner": message(track[kind]) if kind else {}}

    def event(self, sequence, time, data):
        event = message(data)
        track = event[11]
        assert track in self.tracks
        name = event[23].decode() if 23 in event else self.names.get((sequence, event.get(10)))
        if event[9] == 1:
            self.open.setdefault(track, []).append((time, name))
        elif event[9] == 2:
            start, name = self.open[track].pop()
            assert start <= time
            self.slices.append((track, start, time, name, len(self.open[track])))
        elif event[9] == 3:
            notes = [message(value) for number, value in fields(data) if number == 4]
            self.instants.append((track, time, name, {
                note[10].decode(): note[6].decode() if 6 in note else note[3] for note in notes}))
        else:
            assert event[9] == 4 and self.tracks[track]["kind"] == "counter"
            values = self.counters.setdefault(track, [])
            assert not values or values[-1][0] <= time
            values.append((time, event[30]))

    def named(self, name):
        found = [track for track, about in self.tracks.items() if about["name"] == name]
        assert len(found) == 1, name
        return found[0]

    def value_at(self, track, time):
        return next((value for when, value in reversed(self.counters[track]) if when <= time), 0)
