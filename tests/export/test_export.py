# SPDX-License-Identifier: MIT
"""tidemark export: each file, read by a reader of its own format, has the numbers of `query`."""
import collections
import csv
import gzip
import importlib.util
import io
import json
import os
import pathlib
import pickle
import pickletools
import re
import sqlite3
import statistics
import subprocess

import pytest
from export_kit import BUILD, REPO, Backwards, Perfetto, forwards, tidemark

TRAINING = ("tinytrain", "--quiet", "--steps", "6", "--leak", "100KiB", "--spike", "3",
            "--capacity", "12MiB")  # ends in an OOM, with blocks left
VIEWER_READS = {"PROTO", "STOP", "MARK", "EMPTY_DICT", "EMPTY_LIST", "SETITEMS", "APPENDS", "TUPLE2",
                "SHORT_BINUNICODE", "BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1",
                "BINFLOAT", "NONE", "NEWTRUE", "NEWFALSE", "MEMOIZE", "BINGET", "LONG_BINGET"}


def record(folder, name, *command, options=()):
    program = [BUILD / command[0], *command[1:]]
    subprocess.run([BUILD / "tidemark", "run", "-q", "-o", name, *options, "--", *program],
                   cwd=folder, timeout=60, check=False, capture_output=True)
    return folder / name


@pytest.fixture(scope="module")
def a(tmp_path_factory):
    return record(tmp_path_factory.mktemp("export"), "a.tmk", *TRAINING)


def query(run, sql):
    return json.loads(tidemark("query", run, sql, "--json"))["rows"]


def values(run, sql):
    return [tuple(row.values()) for row in query(run, sql)]


def export(run, form, *options, suffix=""):
    path = pathlib.Path(run).with_suffix(f".{form}{suffix}")
    tidemark("export", run, "--to", form, "-o", path, *options)
    return path


def snapshot_of(run, *options, suffix=""):
    data = export(run, "torch-snapshot", *options, suffix=suffix).read_bytes()
    assert data[:2] == b"\x80\x04"
    return pickle.loads(data)


# ---- torch-snapshot

def test_snapshot_has_every_allocation(a):
    snapshot = snapshot_of(a)
    trace = snapshot["device_traces"][0]
    start = query(a, "SELECT start_realtime_ns AS ns FROM processes")[0]["ns"]
    frames = collections.defaultdict(list)
    for stack, file, line, name in values(
            a, "SELECT stack_id, file, line, function FROM frames ORDER BY stack_id, depth"):
        frames[stack].append({"filename": file, "line": line, "name": name})
    wanted = [((start + ns) // 1000, address, size, category, frames[stack])
              for ns, address, size, category, stack in values(
                  a, "SELECT alloc_ns, address, size, category, stack_id FROM allocations ORDER BY id")]
    found = [(entry["time_us"], entry["addr"], entry["size"], entry["category"], entry["frames"])
             for entry in trace if entry["action"] == "alloc"]
    assert found == wanted
    for action in ("free_requested", "free_completed"):
        found = [(entry["time_us"], entry["addr"], entry["size"]) for entry in trace
                 if entry["action"] == action]
        assert found == [((start + ns) // 1000, address, size) for ns, address, size in values(
            a, "SELECT free_ns, address, size FROM allocations WHERE free_ns NOT NULL ORDER BY free_ns")]
    oom, = [entry for entry in trace if entry["action"] == "oom"]
    assert oom["size"] == query(a, "SELECT requested FROM ooms")[0]["requested"]
    assert trace[-1]["action"] == "snapshot"
    assert "unknown" in {entry["category"] for entry in trace if "category" in entry}


def test_snapshot_is_of_opcodes_that_the_viewer_reads(a):
    data = export(a, "torch-snapshot").read_bytes()
    used = [(opcode.name, value) for opcode, value, _ in pickletools.genops(data)]
    assert {name for name, _ in used} <= VIEWER_READS
    assert all(abs(value) < 1 << 63 for name, value in used if name == "LONG1")
    portion = 0  # a list's elements lie on the reader's stack until APPENDS
    for name, _ in used:
        portion = 0 if name in ("APPENDS", "MARK") else portion + (name == "SETITEMS")
        assert portion <= 1000


def test_snapshot_replays_to_our_figures(a):
    snapshot = snapshot_of(a)
    most, left = forwards(snapshot["device_traces"][0])
    assert most == query(a, "SELECT max_allocated FROM devices")[0]["max_allocated"]
    assert left == dict(values(a, "SELECT address, size FROM allocations WHERE free_ns IS NULL"))
    view = Backwards(snapshot, 0)
    assert view.final == left
    assert view.blocks == {}
    assert len({id(entry["frames"]) for entry in snapshot["device_traces"][0]
                if entry["action"] == "alloc"}) == len(
        values(a, "SELECT DISTINCT stack_id FROM allocations"))


def test_torchs_own_reader_takes_it(a):
    found = importlib.util.find_spec("torch")
    path = pathlib.Path(found.origin).parent / "cuda" / "_memory_viz.py"
    spec = importlib.util.spec_from_file_location("memory_viz", path)
    viz = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(viz)
    segments = snapshot_of(a)["segments"]
    stats = viz.stats(segments)
    live = query(a, "SELECT sum(size) AS bytes FROM allocations WHERE free_ns IS NULL")[0]["bytes"]
    assert stats["active_allocated"].value == live
    assert stats["total_size"].value == live + stats["inactive"].value
    lines = viz.segments(segments, format_flamegraph=str.splitlines)
    assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == stats["total_size"].value


def test_snapshot_annotations(a):
    notes = snapshot_of(a)["external_annotations"]
    started = collections.Counter(note["name"] for note in notes if note["stage"] == "START")
    stages = dict(values(a, "SELECT name, count(*) FROM ranges WHERE kind = 'stage' GROUP BY 1"))
    steps = {f"step {step}": 1 for step, in values(a, "SELECT step FROM steps WHERE step NOT NULL")}
    assert started == {**stages, **steps}
    ended = collections.Counter(note["name"] for note in notes if note["stage"] == "END")
    still_open = values(a, "SELECT name FROM ranges WHERE kind = 'stage' AND end_ns IS NULL")
    assert started - ended == collections.Counter(name for name, in still_open)


def test_a_part_of_the_time(a):
    """Blocks from before are seen in the final segments, or being freed, with their stacks."""
    whole, part = snapshot_of(a), snapshot_of(a, "--from", "step:1", "--until", "1", suffix="1")
    start, end = [values(a, "SELECT start_ns, end_ns FROM steps WHERE step = 1")[0][i] for i in (0, 1)]
    alive = dict(values(a, "SELECT address, size FROM allocations "
                           f"WHERE alloc_ns <= {end} AND (free_ns IS NULL OR free_ns > {end})"))
    before = dict(values(a, "SELECT address, size FROM allocations "
                            f"WHERE alloc_ns < {start} AND (free_ns IS NULL OR free_ns >= {start})"))
    view = Backwards(part, 0)
    assert view.final == alive
    assert view.blocks == before
    inside = [entry for entry in part["device_traces"][0] if entry["action"] == "alloc"]
    assert inside == [entry for entry in whole["device_traces"][0] if entry["action"] == "alloc" and
                      inside[0]["time_us"] <= entry["time_us"] <= inside[-1]["time_us"]]
    assert len(inside) == values(a, f"SELECT count(*) FROM allocations "
                                    f"WHERE alloc_ns BETWEEN {start} AND {end}")[0][0]


@pytest.mark.parametrize("options, flags", [
    (("--max-size", "4MiB"), ("--steps", "12000", "--layers", "1", "--dim", "8", "--heads", "1",
                              "--seq", "8", "--batch", "1")),
    ((), ("--steps", "3", "--threads", "4", "--batch", "16")),
])
def test_other_runs_hold_together(tmp_path, options, flags):
    """One that has given up its start; one of several threads."""
    run = record(tmp_path, "b.tmk", "tinytrain", "--quiet", *flags, options=options)
    snapshot = snapshot_of(run)
    view = Backwards(snapshot, 0)
    assert view.final == dict(values(run, "SELECT address, size FROM allocations WHERE free_ns IS NULL"))
    if options:
        assert view.blocks  # there before the part that is left
        assert len(snapshot["device_traces"][0]) > 100000
    else:
        assert view.blocks == {}


def test_a_random_trace_does_no_harm(tmp_path):
    """Of a program that does all at random, even the impossible: what is written can be loaded."""
    run = tmp_path / "random.trace"
    subprocess.run([BUILD / "gcc" / "make_trace_of_all", run, "7", "30000", "400000"], check=True)
    for form in ("torch-snapshot", "perfetto", "speedscope", "folded", "csv", "json", "sqlite"):
        export(run, form)
    snapshot = pickle.loads(run.with_suffix(".torch-snapshot").read_bytes())
    assert sum(map(len, snapshot["device_traces"])) > 1000
    Perfetto(run.with_suffix(".perfetto").read_bytes())
    json.loads(run.with_suffix(".speedscope").read_bytes())


# ---- perfetto

def test_perfetto_counters(a):
    trace = Perfetto(export(a, "perfetto").read_bytes())
    peak_ns, peak = values(a, "SELECT max_ns, max_allocated FROM devices")[0]
    allocated = trace.named("cpu allocated")
    assert max(value for _, value in trace.counters[allocated]) == peak
    assert (peak_ns, peak) in trace.counters[allocated]
    live = query(a, "SELECT sum(size) AS bytes FROM allocations WHERE free_ns IS NULL")[0]["bytes"]
    assert trace.counters[allocated][-1][1] == live
    by_category = dict(values(a, "SELECT category, sum(size) FROM peak GROUP BY 1"))
    tracks = {about["name"][len("cpu of which "):]: track for track, about in trace.tracks.items()
              if about["name"].startswith("cpu of which ")}
    assert set(tracks) == {name for name, in values(a, "SELECT DISTINCT category FROM allocations")}
    for name, track in tracks.items():
        assert trace.value_at(track, peak_ns) == by_category.get(name, 0)
    assert sum(trace.counters[track][-1][1] for track in tracks.values()) == live


def test_perfetto_slices(a):
    trace = Perfetto(export(a, "perfetto").read_bytes())
    end_ns = query(a, "SELECT max(time_ns) AS ns FROM events")[0]["ns"]
    found = sorted((start, end, name, depth) for track, start, end, name, depth in trace.slices
                   if trace.tracks[track]["kind"] == "thread")
    assert found == sorted(values(
        a, f"SELECT start_ns, coalesce(end_ns, {end_ns}) AS e, name, depth FROM ranges"))
    steps = trace.named("steps")
    found = [(start, name) for track, start, _, name, _ in trace.slices if track == steps]
    assert found == [(start, f"step {step}") for step, start in values(
        a, "SELECT step, start_ns FROM steps WHERE step NOT NULL")]
    (_, time, name, notes), = trace.instants
    assert name == "out of memory"
    assert (time, notes["requested"]) == values(a, "SELECT time_ns, requested FROM ooms")[0]
    thread, = [about for about in trace.tracks.values() if about["kind"] == "thread"]
    assert thread["owner"][2] == query(a, "SELECT DISTINCT thread FROM allocations")[0]["thread"]


def test_perfetto_has_all_ranks(tmp_path):
    script = ("RANK=0 WORLD_SIZE=2 tinytrain --quiet --steps 2; "
              "RANK=1 WORLD_SIZE=2 tinytrain --quiet --steps 2 --batch 16")
    subprocess.run([BUILD / "tidemark", "run", "-q", "-o", "r.tmk", "--", "sh", "-c", script],
                   cwd=tmp_path, env={"PATH": f"{BUILD}:/usr/bin:/bin"}, check=True, timeout=60)
    run = tmp_path / "r.tmk"
    trace = Perfetto(export(run, "perfetto").read_bytes())
    for rank, peak in values(run, "SELECT rank, max_allocated FROM devices"):
        process, = [track for track, about in trace.tracks.items()
                    if about["name"].startswith(f"rank {rank}: tinytrain")]
        counter, = [track for track, about in trace.tracks.items()
                    if about["name"] == "cpu allocated" and about["parent"] == process]
        assert max(value for _, value in trace.counters[counter]) == peak
    one = Perfetto(export(run, "perfetto", "--rank", "1", suffix="1").read_bytes())
    assert len(one.slices) * 2 == len(trace.slices)
    most, _ = forwards(snapshot_of(run, "--rank", "0")["device_traces"][0])
    assert most == values(run, "SELECT max_allocated FROM devices WHERE rank = 0")[0][0]
    rows = csv.DictReader(io.StringIO(tidemark("export", run, "--to", "csv", "--rank", 0, "-o", "-")))
    assert {row["rank"] for row in rows} == {"0"}


# ---- stacks

BY_STACK = {
    "peak": "SELECT stack_id, sum(size) AS n FROM peak GROUP BY 1",
    "allocated": "SELECT stack_id, sum(size) AS n FROM allocations GROUP BY 1",
    "left": "SELECT stack_id, sum(size) AS n FROM allocations WHERE free_ns IS NULL GROUP BY 1",
}


def stacks(run):
    """{id: [(file, function, line), ...], outermost first}"""
    out = collections.defaultdict(list)
    for stack, *frame in values(run, "SELECT stack_id, file, function, line FROM frames "
                                     "ORDER BY stack_id, depth DESC"):
        out[stack].append(tuple(frame))
    return out


def test_speedscope(a):
    page = json.loads(export(a, "speedscope").read_text(encoding="utf-8"))
    assert page["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = [(frame.get("file"), frame["name"], frame.get("line")) for frame in page["shared"]["frames"]]
    assert len(set(frames)) == len(frames)
    assert len(page["profiles"]) == 3
    assert page["activeProfileIndex"] == 0
    known = stacks(a)
    for profile, sql in zip(page["profiles"], BY_STACK.values()):
        assert (profile["type"], profile["unit"], profile["startValue"]) == ("sampled", "bytes", 0)
        wanted = collections.Counter()
        for stack, n in values(a, sql):
            wanted[tuple(known[stack])] += n
        found = collections.Counter()
        for sample, weight in zip(profile["samples"], profile["weights"], strict=True):
            found[tuple(frames[i] for i in sample)] += weight
        assert found == wanted
        assert profile["endValue"] == sum(wanted.values())


@pytest.mark.parametrize("what", BY_STACK)
def test_folded(a, what):
    known = stacks(a)
    wanted = collections.Counter()
    for stack, n in values(a, BY_STACK[what]):
        wanted[";".join(f"{file.rsplit('/', 1)[-1]}:{line} {name}" for file, name, line in known[stack])] += n
    found = collections.Counter()
    for line in tidemark("export", a, "--to", "folded", "--what", what, "-o", "-").splitlines():
        stack, n = line.rsplit(" ", 1)
        found[stack] += int(n)
    assert found == wanted


def test_stacks_of_a_step(a):
    total = sum(int(line.rsplit(" ", 1)[1]) for line in
                tidemark("export", a, "--to", "folded", "--at", "step:1", "-o", "-").splitlines())
    assert total == query(a, "SELECT peak_allocated AS n FROM steps WHERE step = 1")[0]["n"]


# ---- tables

def table_names():
    return [line.split()[0] for line in tidemark("tables").splitlines() if line and line[0].isalpha()]


def test_tables_as_csv_and_json(a):
    for name in ("allocations", "steps", "torch_trace", "frames", "timeline(7)"):
        source = "python.torch_trace" if name == "torch_trace" else name
        for form in ("csv", "json"):
            assert tidemark("export", a, "--to", form, "--table", name, "-o", "-") == \
                tidemark("query", a, f"SELECT * FROM {source}", "--format", form)


def test_sqlite(a):
    base = sqlite3.connect(export(a, "sqlite"))
    tables = {name for name, in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert {"allocations", "events", "steps", "frames", "torch_trace", "peak", "segments"} <= tables
    for name in sorted(tables):
        source = "python.torch_trace" if name == "torch_trace" else name
        rows = query(a, f"SELECT * FROM {source}")
        cursor = base.execute(f'SELECT * FROM "{name}"')
        names = [column[0] for column in cursor.description]
        found = cursor.fetchall()
        assert found == [tuple(row.values()) for row in rows], name
        if rows:
            assert names == list(rows[0]), name
    kinds = dict(base.execute("SELECT name, type FROM pragma_table_info('allocations')"))
    assert kinds["size"] == "INTEGER" and kinds["module"] == "TEXT"
    indexed = {row[0] for row in base.execute("SELECT name FROM sqlite_master WHERE type = 'index'")}
    assert {"allocations_step", "allocations_alloc_ns", "events_time_ns", "torch_trace_step"} <= indexed


class Deviation:
    """stddev(), which SQLite itself has not."""

    def __init__(self):
        self.seen = []

    def step(self, value):
        self.seen += [] if value is None else [value]

    def finalize(self):
        return statistics.stdev(self.seen) if len(self.seen) > 1 else None


def test_the_five_queries_run_on_the_file(a):
    path = export(a, "sqlite")
    base = sqlite3.connect(path)
    base.execute("ATTACH ? AS python", (str(path),))
    base.create_aggregate("stddev", 1, Deviation)
    files = sorted((REPO / "bench" / "queries").glob("s5_*.sql"))
    assert len(files) == 5
    for sql in (file.read_text(encoding="utf-8") for file in files):
        for row, wanted in zip(base.execute(sql), values(a, sql), strict=True):
            assert row == pytest.approx(wanted)


# ---- files

def test_names_pipes_and_failures(a, tmp_path):
    for form in ("torch-snapshot", "perfetto", "sqlite"):
        piped = tidemark("export", a, "--to", form, "-o", "-", text=False)
        if form == "sqlite":
            assert piped.startswith(b"SQLite format 3\0")
        else:
            assert piped == export(a, form).read_bytes()
    tidemark("export", a, "--to", "perfetto", folder=tmp_path)
    tidemark("export", f"{a}/", "--to", "csv", "--table", "steps", folder=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.perfetto-trace", "a.steps.csv"]
    tidemark("export", a, "--to", "perfetto", "-o", tmp_path / "no" / "x", status=1)
    for form in ("folded", "torch-snapshot", "perfetto"):
        tidemark("export", a, "--to", form, "-o", "/dev/full", status=1)


# ---- there and back

def test_what_is_exported_can_be_imported(a, tmp_path):
    """And exported again: the same entries and blocks, but for what a snapshot cannot say."""
    first = snapshot_of(a)
    tidemark("import", export(a, "torch-snapshot"), "-o", tmp_path / "back.tmk")
    again = snapshot_of(tmp_path / "back.tmk")

    def lines(frames):  # import keeps no folders of files in C
        return [(os.path.basename(frame["filename"]), frame["line"], frame["name"]) for frame in frames]

    def entries(snapshot):
        return [(entry["action"], entry.get("addr"), entry["size"], entry["time_us"],
                 lines(entry["frames"]) if entry["action"] == "alloc" else None)
                for entry in snapshot["device_traces"][0] if entry["action"] != "snapshot"]

    def blocks(snapshot):
        return sorted((block["address"], block["requested_size"]) for segment in snapshot["segments"]
                      for block in segment["blocks"] if block["state"] == "active_allocated")

    assert entries(again) == entries(first)
    assert blocks(again) == blocks(first)
    Backwards(again, 0)
    assert "PYTORCH_CUDA_ALLOC_CONF" in again["allocator_settings"]


SNAPSHOTS = sorted((REPO / "tests" / "data" / "torch_snapshots").glob("*.pickle.gz"))


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: path.name)
def test_torchs_own_snapshots_there_and_back(path, tmp_path):
    """As torch wrote them: only when a free was completed is not kept, and of what is free no size."""
    with gzip.open(path) as source:
        given = pickle.load(source)
    tidemark("import", path, "-o", tmp_path / "there.tmk")
    back = snapshot_of(tmp_path / "there.tmk")

    def entries(snapshot):
        return [(entry["action"], entry.get("addr", entry.get("device_free")), entry["size"], entry["stream"],
                 entry["time_us"] if entry["action"] != "free_completed" else None)
                for entry in snapshot["device_traces"][0] if entry["action"] != "snapshot"]

    def segments(snapshot):
        return sorted(({**segment, "frames": None, "blocks": [
            (block["address"], block["size"], block["state"],
             block["requested_size"] if block["state"] != "inactive" else None)
            for block in segment["blocks"]]} for segment in snapshot["segments"]), key=str)

    assert entries(back) == entries(given)
    assert segments(back) == segments(given)
    assert back["external_annotations"] == given["external_annotations"]
    for key, value in back["allocator_settings"].items():
        assert given["allocator_settings"][key] == value
    assert Backwards(back, 0).blocks == Backwards(given, 0).blocks


# ---- the document

TEXT = (REPO / "docs" / "export.md").read_text(encoding="utf-8")
LINES = [line for block in re.findall(r"```sh\n(.*?)```", TEXT, re.S) for line in block.splitlines()
         if line.startswith("tidemark ")]


def test_the_documents_lines_run(tmp_path):
    record(tmp_path, "a.tmk", "tinytrain", "--quiet", "--steps", "4")
    assert len(LINES) == 8
    for line in LINES:
        subprocess.run(["sh", "-c", line], cwd=tmp_path, env={"PATH": f"{BUILD}:/usr/bin:/bin"}, check=True,
                       capture_output=True, timeout=60)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.perfetto-trace", "a.pickle", "a.speedscope.json", "a.sqlite", "a.tmk", "left.folded", "steps.csv"]
