# SPDX-License-Identifier: MIT
"""`tidemark import`: torch's snapshots against what torch itself counted, and files that are none.

What is older than a snapshot's history is held against a replay in Python of the whole history, by
the rules of torch's allocator, written down here a second time.
"""
import bisect
import copy
import gzip
import json
import os
import pickle
import shlex
import subprocess
from pathlib import Path

import pytest
from test_cli_run import TIDEMARK, wait_until
from test_cli_truth import ask
from test_golden import BUILD, ROOT, SMALL, environment, shell

DATA = Path(ROOT) / "tests" / "data" / "torch_snapshots"
MIB = 1 << 20


def read_truth():
    entries = []
    for name in ("truth_more.json", "truth.json"):
        entries += json.loads((DATA / name).read_text())
    truth = {}
    for entry in entries:
        truth.setdefault(entry["workload"], entry)
    return truth


TRUTH = read_truth()


def load(name):
    with gzip.open(DATA / f"{name}.pickle.gz") as file:
        return pickle.load(file)


def rows(run, query, folder):
    """The rows of a query, numbers as numbers."""
    text = ask(f"tidemark query {run} {shlex.quote(query)} --format csv", folder)
    return [
        tuple(int(cell) if cell.lstrip("-").isdigit() else cell for cell in line.split(","))
        for line in text.splitlines()[1:]
    ]


def import_(source, folder, flags="-o a.tmk"):
    done = shell(f"tidemark import {source} {flags}", folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    return done.stderr


def store(snapshot, path, protocol=4):
    with open(path, "wb") as file:
        pickle.dump(snapshot, file, protocol=protocol)


def figures(folder, run="a.tmk"):
    """What torch counts too, by device."""
    check = json.loads(ask(f"tidemark check {run} --json", folder))["traces"][0]
    assert check["ok"], check
    query = (
        "SELECT device, max(peak_allocated), max(peak_reserved), max(end_allocated),"
        " max(end_reserved), sum(allocations) FROM steps GROUP BY device"
    )
    keys = ("peak_allocated", "peak_reserved", "cur_allocated", "cur_reserved", "num_alloc")
    return {row[0]: dict(zip(keys, row[1:])) for row in rows(run, query, folder)}


def peak_requested(folder, run="a.tmk"):
    """The most that was requested at once: what a replay of the allocator starts from."""
    query = (
        "SELECT max(total) FROM (SELECT sum(delta) OVER (ORDER BY ns, delta, id ROWS UNBOUNDED"
        " PRECEDING) AS total FROM (SELECT alloc_ns AS ns, requested AS delta, id FROM allocations"
        " UNION ALL SELECT free_ns, -requested, id FROM allocations WHERE free_ns IS NOT NULL))"
    )
    return rows(run, query, folder)[0][0]


# ---- real snapshots


@pytest.mark.parametrize("name", sorted(TRUTH))
def test_truth(name, tmp_path):
    truth = TRUTH[name]
    said = import_(DATA / f"{name}.pickle.gz", tmp_path)
    assert "do not fit" not in said and "were there before" not in said
    found = figures(tmp_path)["cuda:0"]
    assert found == {key: truth[key] for key in found}
    assert peak_requested(tmp_path) == truth["peak_requested"]
    assert rows("a.tmk", "SELECT count(*) FROM ooms", tmp_path) == [(truth["ooms"],)]
    peak = json.loads(ask("tidemark peak a.tmk --json", tmp_path))
    assert peak["allocated"] == truth["peak_allocated"]

    snapshot = load(name)
    blocks = [
        (block["address"], block["size"], block["requested_size"])
        for segment in snapshot["segments"]
        for block in segment["blocks"]
        if block["state"] == "active_allocated"
    ]
    query = "SELECT address, size, requested FROM allocations WHERE free_ns IS NULL ORDER BY address"
    assert rows("a.tmk", query, tmp_path) == sorted(blocks)


def test_out_of_memory(tmp_path):
    import_(DATA / "oom.pickle.gz", tmp_path)
    (event,) = [e for e in load("oom")["device_traces"][0] if e["action"] == "oom"]
    query = "SELECT requested, device_free, allocated FROM ooms"
    ((requested, free, allocated),) = rows("a.tmk", query, tmp_path)
    assert (requested, free) == (event["size"], event["device_free"])
    assert f"{allocated / MIB:.2f} MiB is allocated" in TRUTH["oom"]["oom_message"]
    assert "\nOut of memory on cuda:0: the request for 27.0 MiB failed with 480.1 MiB" in ask("tidemark report a.tmk", tmp_path)


def test_frames(tmp_path):
    """Lines as the snapshot has them; frames of C++ are not taken for a line of the program."""
    import_(DATA / "lora_all.pickle.gz", tmp_path)
    event = next(e for e in load("lora_all")["device_traces"][0] if e["action"] == "alloc")
    query = (
        "SELECT f.function, f.line FROM allocations a JOIN frames f ON f.stack_id = a.stack_id"
        " WHERE a.id = 1 ORDER BY f.depth"
    )
    text = ask(f"tidemark query a.tmk {shlex.quote(query)} --format json", tmp_path)
    found = [(row["function"], row["line"] or 0) for row in json.loads(text)["rows"]]
    assert found == [(frame["name"], frame["line"]) for frame in event["frames"]]
    report = json.loads(ask("tidemark report a.tmk --json", tmp_path))
    files = {site["file"] for site in report["processes"][0]["sites"] if site["file"]}
    assert all(file.endswith(".py") or file.startswith("<c++") for file in files)
    functions = {site["function"] for site in report["processes"][0]["sites"]}
    assert not any("unwind" in name for name in functions if name)
    owners = rows("a.tmk", "SELECT DISTINCT owner FROM segments", tmp_path)
    assert owners == [("torch",)]


def test_streams(tmp_path):
    """A block that another stream still uses is held from its free until that is done."""
    import_(DATA / "streams.pickle.gz", tmp_path)
    trace = load("streams")["device_traces"][0]
    late = [
        event["addr"]
        for event, after in zip(trace, trace[1:] + [{"action": "", "addr": 0}])
        if event["action"] == "free_requested"
        and (after["action"], after["addr"]) != ("free_completed", event["addr"])
    ]
    held = rows("a.tmk", "SELECT address FROM events WHERE kind = 'held' ORDER BY rowid", tmp_path)
    assert [row[0] for row in held] == late and len(late) == 29
    handles = {event["stream"] for event in trace if event["action"] == "alloc"}
    found = rows("a.tmk", "SELECT DISTINCT stream FROM allocations", tmp_path)
    assert {row[0] for row in found} == handles and len(handles) > 1


def test_annotations(tmp_path):
    import_(DATA / "lora.pickle.gz", tmp_path)
    starts = [a["name"] for a in load("lora")["external_annotations"] if a["stage"] == "START"]
    found = rows("a.tmk", "SELECT name FROM ranges WHERE kind = 'user' ORDER BY start_ns", tmp_path)
    assert [row[0] for row in found] == starts and starts


# ---- the same in other clothes


def test_encodings(tmp_path):
    """Protocols 2 to 5, plain and packed, keys in another order, from standard input: all the same."""
    snapshot = load("oom")
    for protocol in (2, 3, 4, 5):
        store(snapshot, tmp_path / f"p{protocol}.pickle", protocol)
    store({key: snapshot[key] for key in reversed(snapshot)}, tmp_path / "turned.pickle")
    query = (
        "SELECT a.id, address, size, requested, alloc_ns, free_ns, stream, s.text FROM allocations a"
        " LEFT JOIN stacks s ON s.id = a.stack_id"
    )
    import_(DATA / "oom.pickle.gz", tmp_path, "-o packed.tmk")
    expected = rows("packed.tmk", query, tmp_path)
    assert len(expected) == TRUTH["oom"]["num_alloc"]
    for name in ("p2", "p3", "p4", "p5", "turned"):
        import_(f"{name}.pickle", tmp_path, "")
        assert rows(f"{name}.tmk", query, tmp_path) == expected, name
        assert figures(tmp_path, f"{name}.tmk") == figures(tmp_path, "packed.tmk")
    import_("- <p4.pickle", tmp_path, "-o stdin.tmk")
    assert rows("stdin.tmk", query, tmp_path) == expected


def test_shared_events(tmp_path):
    """A pickle may refer back to anything: here to events that were read long before."""
    snapshot = load("streams")
    trace = snapshot["device_traces"][0]
    snapshot["device_traces"] = [trace, list(trace)]  # the same dicts on another device
    store(snapshot, tmp_path / "a.pickle")
    import_("a.pickle", tmp_path)
    found = figures(tmp_path)
    assert found["cuda:0"]["peak_allocated"] == TRUTH["streams"]["peak_allocated"]
    assert found["cuda:1"]["num_alloc"] == found["cuda:0"]["num_alloc"]


def test_old_files(tmp_path):
    """Blocks without an address, with `history` in place of frames; `free` for both frees."""
    segment = {"device": 0, "address": 4096, "total_size": 2 * MIB, "stream": 0, "blocks": []}
    frames = [{"filename": "old.py", "name": "f", "line": 3}]
    segment["blocks"] = [
        {"size": 512, "state": "inactive"},
        {"size": 1024, "state": "active_allocated",
         "history": [{"addr": 4608, "real_size": 1000, "frames": frames}]},
        {"size": 2 * MIB - 1536, "state": "inactive"},
    ]  # fmt: skip
    trace = [
        {"action": "alloc", "addr": 4608, "size": 1000, "stream": 0, "frames": frames},
        {"action": "alloc", "addr": 4096, "size": 400, "stream": 0, "new_key": {"a": (1, None)}},
        {"action": "free", "addr": 4096, "size": 400, "stream": 0},
        {"action": "unheard_of", "addr": 1, "size": 1, "stream": 0},
    ]
    store({"segments": [segment], "device_traces": [trace], "new": b"x"}, tmp_path / "a.pickle", 3)
    assert "1 events of kinds that are not known" in import_("a.pickle", tmp_path)
    assert figures(tmp_path)["cuda:0"]["peak_allocated"] == 1536
    query = "SELECT address, size, requested FROM allocations WHERE free_ns IS NULL"
    assert rows("a.tmk", query, tmp_path) == [(4608, 1024, 1000)]

    store({"segments": [segment]}, tmp_path / "b.pickle", 2)  # no history at all
    import_("b.pickle", tmp_path, "")
    assert rows("b.tmk", query, tmp_path) == [(4608, 1024, 1000)]
    lines = ask('tidemark query b.tmk "SELECT file, line FROM frames" --format csv', tmp_path)
    assert "old.py,3" in lines


def test_there_and_back(tmp_path):
    """Exported as a snapshot and imported again it is the same run."""
    import_(DATA / "streams_expandable.pickle.gz", tmp_path)
    shell("tidemark export a.tmk --to torch-snapshot -o b.pickle", tmp_path)
    assert "do not fit" not in import_("b.pickle", tmp_path, "")
    assert figures(tmp_path, "b.tmk") == figures(tmp_path)
    query = "SELECT address, size, requested, alloc_ns, free_ns, stream FROM allocations"
    assert rows("b.tmk", query, tmp_path) == rows("a.tmk", query, tmp_path)


# ---- a history that has lost its beginning


class Replay:
    """Blocks where they lie: real sizes of a history that is whole. Segments are never expandable."""

    def __init__(self):
        self.segments = {}  # address: [[address, size, is used], ...]
        self.sizes = {}  # of blocks that are allocated
        self.curve = []  # allocated, after each event

    def pieces(self, address):
        starts = sorted(self.segments)
        return self.segments[starts[bisect.bisect_right(starts, address) - 1]]

    def alloc(self, event):
        pieces = self.pieces(event["addr"])
        at = next(i for i, piece in enumerate(pieces) if piece[0] == event["addr"])
        size = max(512, -(-event["size"] // 512) * 512)
        rest = pieces[at][1] - size
        if rest >= 512 if size <= MIB else rest > MIB:
            pieces.insert(at + 1, [event["addr"] + size, rest, False])
            pieces[at][1] = size
        pieces[at][2] = True
        self.sizes[event["addr"]] = pieces[at][1]

    def free(self, event):
        pieces = self.pieces(event["addr"])
        next(piece for piece in pieces if piece[0] == event["addr"])[2] = False
        merged = []
        for piece in pieces:
            if merged and not piece[2] and not merged[-1][2]:
                merged[-1][1] += piece[1]
            else:
                merged.append(piece)
        pieces[:] = merged

    def apply(self, event):
        if event["action"] == "segment_alloc":
            self.segments[event["addr"]] = [[event["addr"], event["size"], False]]
        elif event["action"] == "segment_free":
            del self.segments[event["addr"]]
        elif event["action"] == "alloc":
            self.alloc(event)
        elif event["action"] == "free_requested":
            self.sizes.pop(event["addr"])
        elif event["action"] == "free_completed":
            self.free(event)
        self.curve.append(sum(self.sizes.values()))


@pytest.mark.parametrize("name", ["lora", "oom", "varlen"])
def test_lost_beginning(name, tmp_path):
    snapshot = load(name)
    trace = snapshot["device_traces"][0]
    replay, reserved, now = Replay(), [], 0
    for event in trace:
        replay.apply(event)
        now += event["size"] if event["action"] == "segment_alloc" else 0
        now -= event["size"] if event["action"] == "segment_free" else 0
        reserved.append(now)
    assert max(replay.curve) == TRUTH[name]["peak_allocated"]
    assert max(reserved) == TRUTH[name]["peak_reserved"]
    for cut in (1, len(trace) // 2, len(trace) * 9 // 10, len(trace)):
        snapshot["device_traces"][0] = trace[cut:]
        store(snapshot, tmp_path / "cut.pickle")
        said = import_("cut.pickle", tmp_path, "-o cut.tmk --force")
        assert "were there before" in said or replay.curve[cut - 1] == 0
        assert "do not fit" not in said
        assert figures(tmp_path, "cut.tmk")["cuda:0"] | {"num_alloc": 0} == {
            "peak_allocated": max(replay.curve[cut - 1 :]),
            "peak_reserved": max(reserved[cut - 1 :]),
            "cur_allocated": TRUTH[name]["cur_allocated"],
            "cur_reserved": TRUTH[name]["cur_reserved"],
            "num_alloc": 0,
        }, cut


def test_lost_beginning_of_waiting_blocks(tmp_path):
    """Cut anywhere, also between a free and its completion, and with expandable memory."""
    for name in ("streams", "streams_expandable", "growth_expandable"):
        snapshot = load(name)
        trace = snapshot["device_traces"][0]
        truth = TRUTH[name]
        for cut in range(len(trace) // 7, len(trace), len(trace) // 7):
            snapshot["device_traces"][0] = trace[cut:]
            store(snapshot, tmp_path / "cut.pickle")
            assert "do not fit" not in import_("cut.pickle", tmp_path, "-o cut.tmk --force")
            found = figures(tmp_path, "cut.tmk")["cuda:0"]
            assert found["cur_allocated"] == truth["cur_allocated"]
            assert found["cur_reserved"] == truth["cur_reserved"]


# ---- several devices


def test_two_devices(tmp_path):
    """The same addresses on both, taking turns in time."""
    def entry(action, size, time_us, address=MIB):
        return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": time_us}

    def segment(device, blocks):
        return {"device": device, "address": MIB, "total_size": 2 * MIB, "stream": 0,
                "segment_type": "small", "blocks": blocks}  # fmt: skip

    rest = {"address": MIB + 1024, "size": 2 * MIB - 1024, "requested_size": 0, "state": "inactive"}
    used = {"address": MIB, "size": 1024, "requested_size": 600, "state": "active_allocated"}
    snapshot = {
        "segments": [segment(0, [{**rest, "address": MIB, "size": 2 * MIB}]),
                     segment(1, [used, rest])],
        "device_traces": [
            [entry("segment_alloc", 2 * MIB, 10), entry("alloc", 100, 30),
             entry("free_requested", 100, 50), entry("free_completed", 100, 50)],
            [entry("segment_alloc", 2 * MIB, 20), entry("alloc", 600, 40)],
        ],
    }  # fmt: skip
    store(snapshot, tmp_path / "a.pickle")
    import_("a.pickle", tmp_path)
    found = figures(tmp_path)
    assert [found[d]["peak_allocated"] for d in ("cuda:0", "cuda:1")] == [512, 1024]
    assert [found[d]["cur_allocated"] for d in ("cuda:0", "cuda:1")] == [0, 1024]
    assert [found[d]["cur_reserved"] for d in ("cuda:0", "cuda:1")] == [2 * MIB, 2 * MIB]
    query = "SELECT time_ns, device FROM events WHERE kind IN ('allocate', 'free') ORDER BY rowid"
    assert rows("a.tmk", query, tmp_path) == [
        (20_000, "cuda:0"), (30_000, "cuda:1"), (40_000, "cuda:0"),
    ]  # fmt: skip


# ---- names, and files that are none


class Harmful:
    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


def refused(source, folder, status, why):
    before = sorted(os.listdir(folder))
    done = shell(f"tidemark import {source}", folder)
    assert (done.returncode, done.stdout) == (status, "")
    assert why in done.stderr
    assert sorted(os.listdir(folder)) == before


def test_refused(tmp_path):
    harm = Harmful(f"touch {tmp_path}/harm")
    for protocol in (2, 3, 4, 5):
        snapshot = copy.copy(load("streams"))
        snapshot["segments"] = snapshot["segments"] + [harm]
        store(snapshot, tmp_path / "harm.pickle", protocol)
        refused("harm.pickle", tmp_path, 3, "system: this file wants code run; nothing was run")
    store([1, 2], tmp_path / "list.pickle")
    refused("list.pickle", tmp_path, 3, 'it has no "segments"')
    store({"segments": [{"device": 0, "address": 1 << 70}]}, tmp_path / "large.pickle")
    refused("large.pickle", tmp_path, 3, "makes sense")
    whole = (DATA / "streams.pickle.gz").read_bytes()
    (tmp_path / "cut.pickle.gz").write_bytes(whole[:-2000])
    refused("cut.pickle.gz", tmp_path, 3, "it was cut")
    (tmp_path / "cut.pickle").write_bytes(gzip.decompress(whole)[:-2000])
    refused("cut.pickle", tmp_path, 3, "it was cut")
    (tmp_path / "model.pt").write_bytes(b"PK\3\4" + bytes(100))
    refused("model.pt", tmp_path, 3, "a zip file, as torch.save() writes checkpoints")
    (tmp_path / "a.json").write_text('{"segments": []}')
    refused("a.json", tmp_path, 3, "looks like JSON")
    (tmp_path / "empty").write_text("")
    refused("empty", tmp_path, 3, "empty")
    refused(".", tmp_path, 3, "a folder")
    refused("nothing.pickle", tmp_path, 3, "no such file")


def test_living_run_is_not_replaced(tmp_path):
    """Nor by way of a link to it: not one trace is removed."""
    store(load("streams"), tmp_path / "x.pickle")
    os.symlink("x.tmk", tmp_path / "link.tmk")
    with subprocess.Popen([TIDEMARK, "run", "-q", "-o", "x.tmk", "--", os.path.join(BUILD, "tinytrain"),
                           "--steps", "1000000", *SMALL.split()], cwd=tmp_path, env=environment(),
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as job:
        try:
            wait_until("a whole trace",
                       lambda: shell("tidemark check x.tmk", tmp_path).returncode == 0)
            before = os.listdir(tmp_path / "x.tmk")
            for name, reason in (("x.tmk", "still records into"), ("link.tmk", "is a symbolic link")):
                done = shell(f"tidemark import x.pickle --force -o {name}", tmp_path)
                assert done.returncode == 2 and reason in done.stderr, done.stderr
            assert os.listdir(tmp_path / "x.tmk") == before
            assert sorted(os.listdir(tmp_path))[-3:] == ["link.tmk", "x.pickle", "x.tmk"]
        finally:
            job.terminate()
    import_("x.pickle", tmp_path, "--force")


def test_names(tmp_path):
    store(load("streams"), tmp_path / "x.pickle")
    assert "next: tidemark report x.tmk" in import_("x.pickle", tmp_path, "")
    assert "next: tidemark report 'my x.tmk'" in import_("x.pickle", tmp_path, "-o 'my x.tmk'")
    done = shell("tidemark import x.pickle", tmp_path)
    assert done.returncode == 2 and "--force" in done.stderr
    import_("x.pickle", tmp_path, "--force")
    (tmp_path / "x.tmk" / "notes.txt").write_text("mine")
    done = shell("tidemark import x.pickle --force", tmp_path)
    assert done.returncode == 2 and "notes.txt" in done.stderr
    assert (tmp_path / "x.tmk" / "notes.txt").exists()
    (tmp_path / "runs").mkdir()
    import_("x.pickle", tmp_path, "-o runs/y.tmk/")
    assert sorted(os.listdir(tmp_path / "runs")) == ["y.tmk"]
