# SPDX-License-Identifier: MIT
"""tests/format_reader.py, written from docs/format.md alone, and our reader see the same records.

Traces of a training, of killed programs, of files that went round, and damaged ones. Each is read by
both and compared line by line.
"""
import collections
import json
import random
import subprocess
import sys

import pytest
from fault_kit import REPO, program

READER = REPO / "tests" / "format_reader.py"
sys.path.insert(0, str(REPO / "tests"))
from format_categories import categories  # noqa: E402
from format_reader import read_trace  # noqa: E402
from format_ring import read_ring, ring_events  # noqa: E402


def lines_of(args):
    done = subprocess.run(args, capture_output=True)
    assert done.returncode in (0, 1, 3), done.stderr
    return done.stdout.splitlines()


def compare(trace, as_is=True, least=1):
    """Both readers on one file; how many events they agree on."""
    flags = ["--as-is"] if as_is else []
    ours = lines_of([program("trace_dump"), *flags, trace])
    theirs = lines_of([sys.executable, "-B", READER, trace])
    for number, (one, two) in enumerate(zip(ours, theirs)):
        assert one == two, f"event {number}"
    assert len(ours) == len(theirs)
    assert len(ours) >= least
    return len(ours)


def compare_definitions(trace):
    """Both readers' frames, lines and streams; how many lines they agree on."""
    ours = lines_of([program("trace_dump"), "--as-is", "--definitions", trace])
    theirs = lines_of([sys.executable, "-B", READER, trace, "--definitions"])
    assert ours == theirs
    return len(ours)


def compare_categories(trace):
    """What blocks are for, by the rules of docs/owners.md and by ours; how many of each."""
    sql = "SELECT id, category, tensor FROM allocations ORDER BY id"
    done = subprocess.run([program("tidemark"), "query", trace, sql, "--format", "json"],
                          capture_output=True)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout.decode(errors="replace"))["rows"]
    ours = {row["id"]: row["category"] for row in rows}
    names = {row["id"]: row["tensor"] is not None for row in rows}
    theirs = categories(read_trace(trace))
    assert ours == {number: what for number, (what, _) in theirs.items()}
    assert names == {number: name is not None for number, (_, name) in theirs.items()}
    return collections.Counter(ours.values())


def train(watch, *flags, **more):
    done = watch(program("tinytrain"), *flags, **more)
    assert done.returncode in (0, 1), done.stderr
    (trace,) = watch.traces()
    return trace


@pytest.mark.parametrize(
    "flags",
    [
        ["--steps", "6"],
        ["--steps", "5", "--threads", "4", "--layers", "3", "--leak", "64KiB", "--spike", "3"],
        ["--steps", "9", "--capacity", "3MiB"],
        ["--steps", "30", "--dim", "8", "--heads", "2", "--layers", "1", "--nan", "5"],
    ],
    ids=["plain", "threads", "capacity", "marks"],
)
def test_training(watch, flags):
    trace = train(watch, *flags)
    compare(trace, least=100)
    assert "unknown" not in compare_categories(trace)
    check = subprocess.run([sys.executable, "-B", READER, trace, "--check"], capture_output=True)
    assert (check.returncode, check.stdout) == (0, b"")


def test_all_kinds(watch):
    """The journal's events have marks, ranges and tags with texts."""
    watch.report("steady", 3, 8000, 1000)
    (trace,) = watch.traces()
    assert compare(trace) == 24_000


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_made_up(tmp_path, seed):
    """Every kind of record, at random: streams, reserved bytes, ends of devices, Python lines."""
    trace = tmp_path / "made.trace"
    subprocess.run([program("make_trace_of_all"), trace, str(seed), "30000"], check=True)
    text = b"\n".join(lines_of([program("trace_dump"), "--as-is", trace]))
    for kind in (b" reserved ", b" device_end ", b" stream=1 requested=0\n", b" requested=1792\n"):
        assert kind in text
    compare(trace, least=25_000)
    check = subprocess.run([sys.executable, "-B", READER, trace, "--check"], capture_output=True)
    assert (check.returncode, check.stdout) == (0, b"")
    for line in check.stderr.splitlines():  # threads are given other names on the way
        assert b"definition of type 4: " in line
    assert compare_definitions(trace) > 400
    counts = compare_categories(trace)
    assert len(counts) == 10 and min(counts.values()) > 20, counts
    done = subprocess.run([program("tidemark"), "check", trace], capture_output=True, text=True)
    assert ": ok: " in done.stdout, done.stdout


def test_made_up_and_cut(tmp_path):
    """What a checkpoint has is enough to say what blocks are for."""
    trace = tmp_path / "cut.trace"
    size = 2_000_000
    subprocess.run([program("make_trace_of_all"), trace, "4", "120000", str(size)], check=True)
    assert trace.stat().st_size <= size
    left = read_trace(trace)
    assert left.status.given_up > 10_000
    old = left.checkpoints[left.replay_from].blocks.values()
    assert sum(not block.category for block in old) > 50
    counts = compare_categories(trace)
    assert len(counts) == 10 and min(counts.values()) > 20, counts


def test_killed(watch):
    """As it is, and after merging: the second reader reads rings, too."""
    assert watch.report("exit_now", 1, 50_000, 1000, alone=True).returncode == 7
    (trace,) = watch.traces()
    before = compare(trace, least=0)
    left = read_trace(trace)
    found = ring_events(left, read_ring(left.info["ring"]))
    assert before + len(found) == 50_000
    whole = lines_of([sys.executable, "-B", READER, trace])
    assert len(whole) in (before, 50_000)
    assert compare(trace, as_is=False) == 50_000  # merged by trace_dump; then it is one file
    assert compare(trace) == 50_000


def test_round_file(watch):
    watch.report("steady", 2, 350_000, 1500, max_size=4 << 20)
    (trace,) = watch.traces()
    assert trace.stat().st_size <= 4 << 20
    assert 100_000 < compare(trace) < 700_000
    check = subprocess.run([sys.executable, "-B", READER, trace, "--check"], capture_output=True)
    assert (check.returncode, check.stdout) == (0, b"")


def test_damaged(watch):
    """One byte wrong anywhere, or the end missing: both keep the same rest."""
    trace = train(watch, "--steps", "4", "--dim", "8", "--heads", "2", "--layers", "1")
    whole = trace.read_bytes()
    chance = random.Random(5)
    victim = watch.folder / "damaged.trace"
    for _ in range(12):
        data = bytearray(whole)
        data[chance.randrange(4096, len(data))] ^= 1 << chance.randrange(8)
        victim.write_bytes(data)
        compare(victim, least=0)
    for _ in range(6):
        victim.write_bytes(whole[: chance.randrange(4096, len(whole))])
        compare(victim, least=0)
