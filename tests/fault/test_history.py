# SPDX-License-Identifier: MIT
"""Totals and the history of steps are whole, however many blocks are alive when the file goes round
and whenever the process is killed. Where details of blocks are gone, all views say how many.
"""
import json
import re
import struct
import subprocess
import sys
import time

import pytest
from fault_kit import REPO, program

sys.path.insert(0, str(REPO / "tests"))
from format_reader import check, read_trace  # noqa: E402

SMALL = 4 << 20
PACES_NS = (2000, 5000, 12_000, 30_000, 75_000)  # slower where the machine is too busy to pack all of it


def counted(path):
    """Allocations, frees and steps that the program has counted itself."""
    return struct.unpack("<3Q", path.read_bytes()[:24])


def rows(watch, sql):
    return json.loads(watch.tidemark("query", "--format", "json", watch.run, sql))["rows"]


def size_of(block):
    return block % 1000 + 1


def kill_after(watch, process, n_allocs, limit_s):
    """SIGKILL once the program has counted so many allocations."""
    end = time.monotonic() + limit_s
    while process.poll() is None and time.monotonic() < end:
        if watch.journal.exists() and watch.journal.stat().st_size >= 24:
            if counted(watch.journal)[0] >= n_allocs:
                break
        time.sleep(0.001)
    assert process.poll() is None, process.communicate()
    process.kill()
    process.communicate()


def keep_alive(make_watch, n_live, max_size, n_allocs, is_killed):
    """The watch of a program that had so many blocks alive, with no event dropped."""
    for pace_ns in PACES_NS:
        watch = make_watch()
        stop = [] if is_killed else [n_allocs]
        args = [program("live_set"), watch.journal, n_live, pace_ns, *stop]
        args, env = watch.command(args, alone=True, max_size=max_size)
        process = subprocess.Popen(args, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        limit_s = 60 + n_allocs * pace_ns / 1e9
        if is_killed:
            kill_after(watch, process, n_allocs, limit_s)
        else:
            assert process.wait(limit_s) == 0
        (dropped,) = rows(watch, "SELECT dropped FROM processes")
        if dropped["dropped"] == 0:
            return watch
    pytest.fail("events were dropped at every pace")


def check_history(watch, slack):
    """Totals and rows of steps against what the program counted; the row of `processes`."""
    allocs, frees, n_steps = counted(watch.journal)
    (process,) = rows(watch, "SELECT * FROM processes")
    assert process["given_up"] > 100_000
    assert allocs <= process["allocations"] <= allocs + slack
    assert frees <= process["frees"] <= frees + slack
    steps = rows(watch, "SELECT step, allocations, frees, bytes FROM steps WHERE step IS NOT NULL")
    assert [row["step"] for row in steps] == list(range(len(steps)))
    assert n_steps <= len(steps) <= n_steps + slack
    assert sum(row["allocations"] for row in steps) == process["allocations"]
    assert sum(row["frees"] for row in steps) == process["frees"]
    for row in steps[:-1]:
        first = row["step"] * 500
        assert row["allocations"] == 500
        assert row["bytes"] == sum(size_of(k) for k in range(first, first + 500))
    return process


def check_live(watch, process):
    """All live blocks are listed, or those missing are counted."""
    alive = range(process["frees"], process["allocations"])
    listed = rows(
        watch,
        "SELECT count(*) n, sum(size) bytes, sum(id IS NULL) brief FROM allocations "
        "WHERE free_ns IS NULL",
    )[0]
    n_missing = len(alive) - listed["n"]
    assert 0 <= n_missing
    assert process["without_details"] == n_missing + listed["brief"]
    if n_missing == 0:
        assert listed["bytes"] == sum(map(size_of, alive))
    if process["untracked"] == 0:  # else they are upper bounds
        (last,) = rows(watch, "SELECT end_allocated FROM steps ORDER BY start_ns DESC LIMIT 1")
        assert last["end_allocated"] == sum(map(size_of, alive))


def check_views(watch, process):
    """`check` and `report` agree with SQL."""
    said = watch.check_ok()
    assert f": note: {process['given_up']} old events were given up" in said
    report = json.loads(watch.tidemark("report", watch.run, "--format", "json"))
    quality = report["processes"][0]["quality"]
    assert report["processes"][0]["live_blocks"] == process["allocations"] - process["frees"]
    text = " ".join(watch.tidemark("report", watch.run, "--full").split())
    for key, words in (
        ("untracked", "blocks could not be followed"),
        ("without_details", "blocks alive at the end are without details"),
    ):
        n = process[key]
        assert quality[key] == n
        assert (f": note: {n} {words}" in said) == (n > 0)
    n = process["without_details"]
    assert (f"{n:,} blocks alive at the end are without details" in text) == (n > 0)
    (trace,) = watch.traces()
    assert trace.stat().st_size <= SMALL


@pytest.mark.parametrize("n_live", [1000, 60_000, 150_000, 400_000])
def test_killed_while_going_round(many_watches, n_live):
    watch = keep_alive(many_watches, n_live, SMALL, n_live + 350_000, is_killed=True)
    process = check_history(watch, slack=1)
    check_live(watch, process)
    check_views(watch, process)
    if n_live == 60_000:
        assert check(read_trace(*watch.traces())) == []
    if n_live != 60_000:  # of which all may have been freed since the oldest checkpoint
        assert (process["without_details"] > 0) == (n_live > 60_000)
    assert (process["untracked"] > 0) == (n_live == 400_000)


def test_ended_after_going_round(many_watches):
    watch = keep_alive(many_watches, 100_000, SMALL, 400_000, is_killed=False)
    process = check_history(watch, slack=0)
    check_live(watch, process)
    check_views(watch, process)


def looks_while_going_round(watch, pace_ns):
    """Reads a run five times after its file has gone round; False when events were dropped before."""
    args, env = watch.command([program("live_set"), watch.journal, 20_000, pace_ns], alone=True, max_size=SMALL)
    with subprocess.Popen(args, env=env) as process:
        try:
            n_looks = 0
            end = time.monotonic() + 60 + 300_000 * pace_ns / 1e9
            while n_looks < 5 and time.monotonic() < end:
                time.sleep(0.2)
                if not watch.traces():
                    continue
                (status,) = rows(watch, "SELECT given_up, dropped FROM processes")
                steps = rows(watch, "SELECT step, allocations FROM steps WHERE step IS NOT NULL")
                (after,) = rows(watch, "SELECT dropped FROM processes")
                if after["dropped"]:
                    return False
                assert [row["step"] for row in steps] == list(range(len(steps)))
                assert {row["allocations"] for row in steps[:-1]} <= {500}
                n_looks += status["given_up"] > 0
            assert n_looks == 5
            return True
        finally:
            process.kill()


def test_read_while_going_round(many_watches):
    """Rows of steps that the writer moves while the trace is read are all there."""
    assert any(looks_while_going_round(many_watches(), pace_ns) for pace_ns in PACES_NS[1:]), "dropped at every pace"


def names_recorded(make_watch):
    """The watch of a program with 200,000 names and no event dropped, its row, and what `run` said."""
    for pause_us in (100, 300, 1000, 3000):
        watch = make_watch()
        args, env = watch.command([program("live_set"), watch.journal, "names", 200_000, pause_us])
        args.remove("--quiet")
        done = subprocess.run(args, env=env, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        (process,) = rows(watch, "SELECT allocations, dropped, unnamed FROM processes")
        if process["dropped"] == 0:
            return watch, process, re.sub(r"\s+", " ", done.stderr + done.stdout)
    return pytest.fail("events were dropped at every pace")


def test_more_names_than_there_is_room_for(many_watches):
    """Names that found no room are counted, and every view has the number."""
    watch, process, summary = names_recorded(many_watches)
    assert process["allocations"] == 200_000
    (found,) = rows(
        watch, "SELECT count(*) n, count(name) named FROM events WHERE kind IN ('open', 'tag')"
    )
    assert found["n"] == 204_000
    assert found["n"] - found["named"] == process["unnamed"] > 60_000
    n = process["unnamed"]
    assert f": note: {n} times a name, stack or stream was left out" in watch.check_ok()
    assert f"{n:,} times a name, stack or stream was left out" in summary
    report = json.loads(watch.tidemark("report", watch.run, "--format", "json"))
    assert report["processes"][0]["quality"]["unnamed"] == n
