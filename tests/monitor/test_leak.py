# SPDX-License-Identifier: MIT
"""leak and monitor: what grows is found, with its process; what swings or stands is not."""
import json
import re
import resource
import threading
import time

import pytest
from monitor_kit import GIB, MIB, check_even, in_peace

STEPS, STEP_S = 48, 0.02


def step_through(machine, command, put, warm_up=("--warm-up", "0.1")):
    """(status, stdout, stderr) of a monitor that sees put(0), put(1) ..., evenly."""
    put(0)
    times = [time.monotonic()]
    monitor = machine.start(*command, "--duration", "0", *warm_up, "--json")
    for i in range(STEPS):
        times.append(time.monotonic())
        put(i)
        monitor.settle(1)
        time.sleep(max(0, times[1] + (i + 1) * STEP_S - time.monotonic()))
    ended = monitor.end()
    check_even([*times, time.monotonic()])
    return ended


def drive(machine, command, process, **more):
    """The same, where process(i) is what PID 41 holds, in MiB, beside a steady PID 42."""
    def put(i):
        machine.cards([f"process 41 {int(process(i)) * MIB}", f"process 42 {2 * GIB}"],
                      [f"process 43 {GIB}"], **more)
    return in_peace(lambda: step_through(machine, command, put))


# The monitors list processes every second when there is no end: too seldom for a quick test, so
# what processes do is judged in tests/unit/test_sampler.c, and here where there is a duration.

@pytest.mark.parametrize("name,process,status", [
    ("grows", lambda i: 1000 + 20 * i, 1),
    ("grows and swings", lambda i: 1000 + 20 * i + 300 * (i % 3), 1),
    ("stands", lambda i: 1000, 0),
    ("swings", lambda i: 1000 + 300 * (i % 4), 0),
    ("grew once", lambda i: 1000 if i < STEPS / 3 else 9000, 0),
    ("shrinks", lambda i: 9000 - 20 * i, 0),
])
def test_verdict(machine, name, process, status):
    got, out, err = drive(machine, ["leak", "--check", "--threshold", "100"], process)
    report = json.loads(out)
    assert got == status and not err, name
    assert report["verdict"] == ("leak" if status else "clean")
    assert report["threshold_mb"] == 100.0
    devices = {row["device"]: row for row in report["leaks"] if row["pid"] is None}
    assert list(devices) == ([0] if status else [])
    if status:
        assert 700 * MIB < devices[0]["growth_bytes"] <= (20 * STEPS + 600) * MIB
        assert 0 < devices[0]["confidence"] <= 1
    if name == "grows":
        assert devices[0]["confidence"] > 0.9


def test_keys(machine):
    """Those of every leak; what only a job's trace tells is null."""
    _, out, _ = drive(machine, ["leak"], lambda i: 1000 + 20 * i)
    leak = json.loads(out)["leaks"][0]
    assert list(leak) == [
        "file", "line", "function", "stack", "category", "module", "bytes_per_step",
        "blocks_per_step", "first_step", "confidence", "device", "pid", "process", "growth_bytes",
        "bytes_per_second", "window_s", "ended", "last_bytes"]
    assert [leak[key] for key in list(leak)[:9]] == [None, None, None, [], None, None, None, None,
                                                     None]


def test_threshold(machine):
    got, out, _ = drive(machine, ["leak", "--threshold", "5000"], lambda i: 1000 + 20 * i)
    assert got == 0 and json.loads(out)["verdict"] == "clean"
    rows = {(row["device"], row["pid"]): row for row in json.loads(out)["watched"]}
    assert rows[0, None]["growth_bytes"] > 700 * MIB and rows[0, None]["verdict"] == "clean"


def watch(machine, put, status=1, warm_up="1"):
    """What leak says of three seconds in which put(MiB grown) changes the machine, 500 a second."""
    def try_once():
        put(0)
        done = {}
        start = time.monotonic()
        times = [start]
        thread = threading.Thread(target=lambda: done.update(run=machine.run(
            "leak", "--duration", "3", "--warm-up", warm_up, "--interval", "0.02", "--json")))
        thread.start()
        while thread.is_alive():
            times.append(time.monotonic())
            put(int((times[-1] - start) * 500))
            time.sleep(0.02)
        check_even(times)
        return done["run"]
    done = in_peace(try_once)
    assert not done.stderr and (status is None or done.returncode == status)
    return json.loads(done.stdout)


def test_process(machine):
    """With an end in sight processes are listed often enough: the one that grows is named."""
    report = watch(machine, lambda grown: machine.cards(
        [f"process 41 {GIB + grown * MIB}", f"process 42 {2 * GIB}"]))
    assert report["verdict"] == "leak"
    assert sorted((row["device"], row["pid"] or 0) for row in report["leaks"]) == [(0, 0), (0, 41)]
    assert report["leaks"][0]["growth_bytes"] >= report["leaks"][1]["growth_bytes"] > 1000 * MIB
    clean = [row for row in report["watched"] if row["verdict"] == "clean"]
    assert [(row["pid"], row["growth_bytes"]) for row in clean] == [(42, 0)]


def test_process_of_the_host(machine):
    """By what is resident of it, where there is no card."""
    page = resource.getpagesize()

    def put(grown):
        for pid, used in ((41, 100 + grown), (42, 200)):
            machine.put(machine.folder / "proc" / str(pid) / "statm",
                        f"0 {used * MIB // page} 0 0 0 0 0\n")
            machine.put(machine.folder / "proc" / str(pid) / "status", f"Name:\tjob{pid}\n")
    report = watch(machine, put)
    assert [(row["pid"], row["process"]) for row in report["leaks"]] == [(41, "job41")]
    assert report["leaks"][0]["growth_bytes"] > 1000 * MIB
    clean = [row for row in report["watched"] if row["verdict"] == "clean"]
    assert [(row["pid"], row["growth_bytes"]) for row in clean] == [(None, 0), (42, 0)]


def test_process_that_leaked_and_died(machine):
    """It is named though its memory is back, and though it is gone for half of the time."""
    def put(grown):
        leaker = [f"process 41 {GIB + grown * MIB}"] if grown < 750 else []
        machine.cards([*leaker, f"process 42 {2 * GIB}"])
    report = watch(machine, put)
    assert [(row["pid"], row["ended"]) for row in report["leaks"]] == [(41, True)]
    assert 400 * MIB < report["leaks"][0]["growth_bytes"] < 750 * MIB
    assert GIB + 500 * MIB < report["leaks"][0]["last_bytes"] < GIB + 750 * MIB
    steady = next(row for row in report["watched"] if row["pid"] == 42)
    assert steady["ended"] is False and steady["last_bytes"] == 2 * GIB


def test_too_short(machine):
    machine.cards([])
    done = machine.run("leak", "--duration", "0.2", "--interval", "0.1")
    assert done.returncode == 1
    assert done.stdout.startswith("too short to tell: ")
    report = machine.json("leak", "--duration", "0.1", "--json", status=1)
    assert report["verdict"] is None and report["leaks"] == []
    assert re.match(r"too short to tell: watched for 0\.\d s; a verdict takes 30 s", report["verdict_reason"])


def test_too_short_to_be_a_leak(machine):
    """A program that starts grows as a leak does. A look of seconds says so, in leak and monitor alike."""
    def put(i):
        machine.cards([f"process 41 {(1000 + 40 * i) * MIB}"])
    for command in (["leak"], ["monitor", "--all"]):
        status, out, _ = in_peace(lambda command=command: step_through(machine, command, put, warm_up=()))
        report = json.loads(out)
        assert status == (1 if command == ["leak"] else 0), command
        assert report["verdict"] is None and report["leaks"] == [], command
        assert report["verdict_reason"].startswith("too short to tell: watched for "), command
        assert {row["verdict"] for row in report["watched"]} == {None}, command
    machine.cards([f"process 41 {GIB}"])
    first, second = (machine.run(*command, "--duration", "0.3").stdout for command in (["leak"], ["monitor", "--all"]))
    assert "too short to tell: " in first and "too short to tell: " in second


def test_a_program_that_starts(machine):
    """Of a process that comes while the monitor looks the start is left out, however steadily it grows then."""
    def put(grown):
        machine.cards([f"process 42 {2 * GIB}", *([f"process 41 {grown * MIB}"] if grown > 100 else [])])
    report = watch(machine, put, status=None, warm_up="2")
    by_pid = {row["pid"]: row["verdict"] for row in report["watched"]}
    assert by_pid[41] is None and by_pid[42] == "clean", report


def test_text(machine):
    machine.cards([f"process 41 {GIB}"])
    done = machine.run("leak", "--check", "--duration", "0.5", "--warm-up", "0.2", "--interval", "0.02")
    assert done.returncode == 0 and not done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "clean: nothing grew steadily by 100 MB or more in " + lines[0][50:]
    assert lines[1].split() == ["device", "process", "name", "growth", "rate", "verdict"]
    assert lines[2].split() == ["0", "all", "Card", "0", "0", "B", "0", "B/min", "ok"]
    assert lines[3].split() == ["0", "41", "-", "0", "B", "0", "B/min", "ok"]


def test_host(machine):
    def put(i):
        machine.host(2 * GIB + 20 * i * MIB)
    status, out, _ = in_peace(lambda: step_through(machine, ["leak"], put))
    assert status == 1 and json.loads(out)["leaks"][0]["device"] == 0


def test_a_run_that_is_not_there(machine):
    done = machine.run("leak", "a.tmk")
    assert done.returncode == 3 and "a run is a folder made with" in done.stderr


# ---- monitor

def test_monitor_all(machine):
    """All in one report: the profile's, and what the other monitors say. The card is so large that
    nothing is said of when it is full."""
    status, out, err = drive(machine, ["monitor", "--all"], lambda i: 3000 + 3 * i, size=1024 * GIB)
    report = json.loads(out)
    assert status == 1 and report["verdict"] == "leak" and report["leaks"][0]["device"] == 0
    assert list(report)[:3] == ["timestamp", "devices", "summary"]
    first, second = report["devices"]["0"], report["devices"]["1"]
    assert first["statistics"]["samples_count"] > STEPS
    assert not err and first["oom"]["times_passed"] == 0
    assert first["oom"]["risk_level"] == "low" and first["oom"]["predicted_oom_time"] is None
    assert first["oom"]["recommended_actions"] == [] and first["oom"]["threshold"] == 85.0
    assert second["oom"]["current_usage"] == 0.1 and second["oom"]["ooms"] == 0
    assert first["fragmentation"] is None and first["fragmentation_reason"] == (
        "no watched process has memory on it: start the job with tidemark run, or tidemark attach PID")


def test_monitor_all_warns(machine):
    machine.cards([f"process 41 {15 * GIB}"])
    done = machine.run("monitor", "--all", "--duration", "0.3", "--output", "s.json")
    assert done.returncode == 1 and done.stdout.startswith("[WARNING] OOM warning: GPU 0\n")
    report = json.loads((machine.folder / "s.json").read_text())
    assert report["devices"]["0"]["oom"]["over_threshold"] is True


def test_monitor_all_quiet(machine):
    done = machine.run("monitor", "--all", "--duration", "0.5", "--warm-up", "0.2", "--interval", "0.02")
    assert done.returncode == 0 and not done.stderr
    assert "clean: nothing grew" in done.stdout
    assert "fragmentation of 0: not known: torch keeps no cache of the host's memory" in done.stdout


def test_monitor_is_profile(machine):
    machine.cards([f"process 41 {15 * GIB}"])
    report = machine.json("monitor", "--duration", "0.2", "--json")
    assert "leaks" not in report and "oom" not in report["devices"]["0"]
