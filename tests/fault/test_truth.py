# SPDX-License-Identifier: MIT
"""Known workloads: what tinytrain counted itself is what tidemark says, exactly.

Also after the detail was given up (--max-size): totals, peaks and per-step history stay."""
import csv
import json
import subprocess

import pytest
from fault_kit import program

FLAGS = {
    "plain": ["--steps", "8"],
    "threads": ["--steps", "6", "--threads", "4", "--layers", "3"],
    "leak": ["--steps", "12", "--leak", "100KiB", "--dim", "32"],
    "spike": ["--steps", "10", "--spike", "4"],
    "capacity": ["--steps", "10", "--spike", "4", "--capacity", "6MiB"],
    "all": ["--steps", "9", "--threads", "4", "--leak", "33", "--spike", "7", "--nan", "2"],
}


def counts_of(done):
    """The line with which tinytrain ends."""
    return json.loads(done.stdout.splitlines()[-1])


def rows(watch, sql):
    """What a query gives, as lists of texts, without the line of names."""
    text = watch.tidemark("query", "--format", "csv", watch.run, sql)
    return list(csv.reader(text.splitlines()))[1:]


def number(watch, sql):
    ((value,),) = rows(watch, sql)
    return int(value)


def check_sql(watch, wanted):
    """Each figure by every table that can give it."""
    for sql in (
        "SELECT count(*) FROM events WHERE kind = 'allocate'",
        "SELECT count(*) FROM allocations",
        "SELECT sum(allocations) FROM steps",
        "SELECT sum(allocations) FROM devices",
    ):
        assert number(watch, sql) == wanted["allocations"], sql
    for sql in (
        "SELECT count(*) FROM events WHERE kind = 'free'",
        "SELECT count(*) FROM allocations WHERE free_ns IS NOT NULL",
        "SELECT sum(frees) FROM steps",
    ):
        assert number(watch, sql) == wanted["frees"], sql
    for sql in (
        "SELECT sum(size) FROM peak",
        "SELECT max(peak_allocated) FROM steps",
        "SELECT max(max_allocated) FROM devices",
        "SELECT sum(size) FROM live_at((SELECT max_ns FROM devices))",
    ):
        assert number(watch, sql) == wanted["peak_bytes"], sql


@pytest.mark.parametrize("name", FLAGS)
def test_counts(watch, name):
    watch.tidemark("--help")
    done = watch(program("tinytrain"), "--count", *FLAGS[name])
    wanted = counts_of(done)
    assert wanted["allocations"] > 50
    check_sql(watch, wanted)
    found = rows(watch, "SELECT category, sum(size) FROM peak GROUP BY category")
    by_category = {name: size for name, size in wanted["peak_by_category"].items() if size}
    assert {name: int(size) for name, size in found if int(size)} == by_category
    watch.check_ok()


def check_summary(watch, wanted):
    """Against the trace's own figures, without SQL: works before `query` does."""
    (trace,) = watch.traces()
    text = subprocess.run([program("trace_dump"), trace], capture_output=True, check=True).stdout
    assert text.count(b" alloc ") == wanted["allocations"]
    assert text.count(b" free ") == wanted["frees"]
    live, now, peak = {}, 0, 0
    for line in text.decode(errors="replace").splitlines():
        kind, fields = line.split()[1], dict(f.split("=", 1) for f in line.split() if "=" in f)
        if kind == "alloc":
            live[fields["address"]] = int(fields["size"])
            now += int(fields["size"])
            peak = max(peak, now)
        elif kind == "free":
            now -= live.pop(fields["address"])
    assert peak == wanted["peak_bytes"]


@pytest.mark.parametrize("name", FLAGS)
def test_events(watch, name):
    """Every allocation and free is an event of the trace, and their sum peaks where it did."""
    done = watch(program("tinytrain"), "--count", *FLAGS[name])
    check_summary(watch, counts_of(done))
    watch.check_ok()


def test_output_is_the_same(watch):
    args = [program("tinytrain"), "--count", "--steps", "5", "--leak", "1KiB"]
    alone = subprocess.run(args, capture_output=True, text=True)
    done = watch(*args)
    assert (done.returncode, done.stdout, done.stderr) == (0, alone.stdout, alone.stderr)


def test_round_run_keeps_totals(watch):
    """Some 20 MB of events in a file of 4 MiB: totals, peak and all steps are exact."""
    args = ["--count", "--quiet", "--steps", "2500", "--dim", "8", "--heads", "2", "--layers", "4"]
    args += ["--seq", "8", "--batch", "1"]
    done = watch(program("tinytrain"), *args, max_size=4 << 20, timeout=120)
    wanted = counts_of(done)
    (trace,) = watch.traces()
    assert trace.stat().st_size <= 4 << 20
    figures = json.loads(
        subprocess.run(
            [program("trace_totals"), trace], capture_output=True, check=True, text=True
        ).stdout
    )
    assert figures["given_up"] > 100_000
    assert figures["dropped"] == 0
    assert figures["allocations"] == figures["status_allocations"] == wanted["allocations"]
    assert figures["frees"] == figures["status_frees"] == wanted["frees"]
    assert figures["peak_bytes"] == wanted["peak_bytes"]
    history = figures["steps"]
    assert [row["step"] for row in history] == [None, *range(2500)]
    assert max(row["peak_bytes"] for row in history) == wanted["peak_bytes"]
    assert sum(row["allocations"] for row in history) == wanted["allocations"]
    assert sum(row["frees"] for row in history) == wanted["frees"]
    watch.check_ok()
