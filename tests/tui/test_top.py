# SPDX-License-Identifier: MIT
"""`tidemark top` as people see it: in tmux, with keys, and as text and JSON for scripts.

TIDEMARK_GOLDEN=write writes the screens anew: then look at them.
"""
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from top_kit import BUILD, GIB, HERE, OURS, Machine, masked

READY = "4 processes, 2 watched"
PROMPT = r"(^|\n)\$\s*$"


def check(name, screen, pids):
    path = HERE / "golden" / f"tmux_{name}.txt"
    text = masked(screen, pids)
    if os.environ.get("TIDEMARK_GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("width,height", [(80, 24), (120, 40), (200, 60)])
def test_screens(machine, open_terminal, width, height):
    terminal = open_terminal(width, height)
    terminal.start()
    terminal.until(READY)
    check(f"list_{width}x{height}", terminal.settled("38.00G"), machine[1])
    terminal.keys("Down", "Down", "Enter")
    check(f"details_{width}x{height}", terminal.settled("AT PEAK"), machine[1])


def test_keys(open_terminal):
    terminal = open_terminal(100, 30)
    terminal.start()
    terminal.until(READY)
    terminal.type("s")
    terminal.until("ALLOC↓")
    terminal.type("I")
    terminal.until("ALLOC↑")
    terminal.type("<")
    terminal.until("USED↓")
    terminal.type("?")
    terminal.until("choose a process")
    terminal.keys("Escape")
    terminal.until("USED↓")
    terminal.type(" ")
    terminal.until("PAUSED")
    terminal.type(" ")
    terminal.until(r"\d\d:\d\d:\d\d")
    terminal.type("/-tune")
    terminal.until("filter: x7k2-tune")
    terminal.keys("Escape")
    terminal.until("/ filter")
    terminal.type("/训练\n")
    terminal.until(r"1 process, 0 watched")
    terminal.keys("Enter")
    terminal.until("process    40002 ")
    terminal.type("q")
    terminal.until("COMMAND")
    terminal.type("q")
    terminal.until(PROMPT)


def test_mouse(open_terminal):
    terminal = open_terminal(80, 24)
    terminal.start()
    screen = terminal.until(READY)
    lines = screen.split("\n")
    head = next(i for i, line in enumerate(lines) if "COMMAND" in line)

    def click(x, y):  # as an xterm sends it: button down, then up; column, row, each + 32
        for button in (32, 35):
            terminal.run("send-keys", "-H", *(f"{byte:x}" for byte in
                                              (27, 91, 77, button, x + 33, y + 33)))

    click(4, head)
    terminal.until("PID↑")
    click(4, head + 3)
    click(4, head + 3)
    terminal.until("process    40001 ")


def test_resize(open_terminal):
    terminal = open_terminal(80, 24)
    terminal.start()
    terminal.until(READY)
    terminal.run("resize-window", "-x", "120", "-y", "40")
    terminal.until("RANK")
    terminal.run("resize-window", "-x", "40", "-y", "10")
    terminal.until(r"PID +USED↓ +ALLOC +FORECAST COMM")
    terminal.run("resize-window", "-x", "20", "-y", "5")
    terminal.until(r"PID +USED↓ CO…")
    terminal.run("resize-window", "-x", "200", "-y", "60")
    terminal.until(r"W  ━{30}")


def test_new_figures_come(machine, open_terminal):
    terminal = open_terminal(80, 24, "--interval", "0.2")
    terminal.start()
    terminal.until(READY)
    cards = (machine[0].folder / "cards").read_text(encoding="utf-8")
    try:
        machine[0].write("cards", cards.replace(f"40002 {GIB * 3 // 4}", f"40002 {GIB * 20}"))
        terminal.until(r"5 +H100 80GB HBM3 +0 % 31 °C +71/700 W ━+╸?─+ +20\.00/80\.00G +26 %")
        terminal.until(r"40002 root +5 +20\.00G")
    finally:
        machine[0].write("cards", cards)


def test_signals_end_the_wait(open_terminal):
    """The next look is an hour away: a resize is drawn, and SIGTERM ends it, at once."""
    terminal = open_terminal(80, 24, "--interval", "3600")
    terminal.start()
    terminal.until(READY)
    for width, column in [(120, "RANK"), (80, r"USER +DEV +USED"), (120, "RANK")]:
        terminal.run("resize-window", "-x", str(width))
        terminal.until(column)
    os.kill(pid_of_top(terminal), signal.SIGTERM)
    terminal.until(PROMPT)


# ---- runs, signals, commands

@pytest.fixture(name="ranks")
def fixture_ranks(machine):
    """PIDs of a run of two ranks, which ends with the test."""
    pids = machine[0].ranks("grid", 2)
    yield pids
    os.killpg(machine[0].started[-1].pid, signal.SIGKILL)
    machine[0].started[-1].wait()


def only(terminal, text):
    """Show the processes of one run."""
    terminal.start()
    terminal.until("processes, ")
    terminal.type("/")
    terminal.keys(*["BSpace"] * len(OURS))
    terminal.type(f"{text}-{OURS}\n")


def test_runs(open_terminal, ranks):
    terminal = open_terminal(100, 30, "--interval", "0.2")
    only(terminal, "grid")
    screen = terminal.until(r"▾ +×2 .* 64\.00G .* grid\.tmk")
    for rank, pid in enumerate(ranks):
        assert re.search(rf"● +{pid} .* 32\.00G +38\.00G .*[├└]─ rank {rank} python3", screen)
    terminal.keys("Tab")
    screen = terminal.until(r"▸ +×2 .* 64\.00G")
    assert f" {ranks[0]} " not in screen.split("COMMAND")[1]
    terminal.keys("Tab")
    terminal.until("└─ rank ")
    terminal.type("t")
    terminal.until(rf"● +{ranks[0]} .* python3 grid-")
    assert "×2" not in terminal.screen()


def choose(terminal, ranks, rank):
    """Choose a process below the line of its run: those that have the same are listed by PID."""
    terminal.keys("Home", *["Down"] * (1 + sorted(ranks).index(ranks[rank])))


def test_signals(machine, open_terminal, ranks):
    terminal = open_terminal(100, 40, "--interval", "0.2")
    only(terminal, "grid")
    terminal.until("└─ rank ")
    terminal.type("k")
    terminal.until("a signal goes to one process: choose it below its run")
    choose(terminal, ranks, 1)
    terminal.type("k")
    terminal.until(f"signal to {ranks[1]}")
    terminal.keys("Down", "Down", "Enter")
    terminal.until(rf"send SIGKILL to {ranks[1]} \(python3 grid-{OURS}\.py 40\)\? y/N")
    terminal.type("n")
    terminal.until("no signal was sent")
    terminal.type("k")
    terminal.keys("Enter")
    terminal.type("y")
    terminal.until(f"SIGTERM was sent to {ranks[1]}")
    terminal.until(rf"● +{ranks[0]} .* python3 grid-")  # one rank is left, which needs no line
    assert Path(f"/proc/{ranks[0]}").exists() and machine[0].started[-1].poll() is None


def test_no_signal_to_another_process(open_terminal):
    """The list says when 40001 started, which is not when a process of that number did."""
    terminal = open_terminal(120, 30)
    terminal.start()
    terminal.until(READY)
    terminal.type("k")
    terminal.until("signal to 40001")
    terminal.keys("Enter")
    terminal.type("y")
    terminal.until("process 40001 has ended")


def test_report(machine, open_terminal, ranks):
    """It comes in the user's pager, as wide as the screen; then the list is back."""
    pager = machine[0].folder / "pager"
    pager.write_text("#!/bin/sh\necho $COLUMNS columns of ${#}\nhead -n 9\n", encoding="utf-8")
    pager.chmod(0o755)
    terminal = open_terminal(100, 30, TIDEMARK_PAGER=str(pager))
    only(terminal, "grid")
    terminal.until("└─ rank ")
    choose(terminal, ranks, 0)
    terminal.type("r")
    screen = terminal.until("Enter goes back to top")
    assert "100 columns of 0" in screen and f"{ranks[0]}" in screen and "HBM3" not in screen
    terminal.keys("C-c")  # goes to what is shown, and does not end top
    terminal.until("└─ rank ")
    terminal.type("q")
    terminal.until(PROMPT)


# ---- the terminal afterwards

def modes(terminal):
    terminal.type("clear; stty -a; echo done=$?\n")
    return re.sub(r"done=0[\s\S]*", "", terminal.until(r"done=0\n"))


def pid_of_top(terminal):
    shell = int(terminal.run("display-message", "-p", "#{pane_pid}"))
    children = subprocess.run(["pgrep", "-P", str(shell), "tidemark"], capture_output=True,
                              text=True, check=True)
    return int(children.stdout.split()[0])


@pytest.mark.parametrize("end", ["q", "C-c", signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT,
                                 signal.SIGSEGV, signal.SIGABRT])
def test_leaves_the_terminal_as_it_was(open_terminal, end):
    terminal = open_terminal(100, 24)
    before = modes(terminal)
    terminal.type("echo before\n")
    terminal.start()
    terminal.until(READY)
    if isinstance(end, str):
        terminal.keys(end)
    else:
        os.kill(pid_of_top(terminal), end)
    terminal.until(PROMPT)
    flags = terminal.run("display-message", "-p", "#{alternate_on} #{mouse_any_flag} "
                         "#{keypad_cursor_flag} #{cursor_flag}")
    assert flags.split() == ["0", "0", "0", "1"]
    assert modes(terminal) == before


def test_stop_and_go_on(open_terminal):
    terminal = open_terminal(100, 24)
    terminal.start()
    terminal.until(READY)
    terminal.keys("C-z")
    terminal.until(PROMPT)
    terminal.type("fg\n")
    terminal.until(READY)
    terminal.type("q")
    terminal.until(PROMPT)


# ---- terminals

@pytest.mark.parametrize("term,more,sign", [
    ("xterm", {}, "━"), ("screen", {}, "━"), ("tmux-256color", {}, "━"),
    ("linux", {}, "####"), ("vt100", {}, "####"),
    ("xterm", {"LC_ALL": "C"}, "####"), ("xterm", {"NO_COLOR": "1"}, "━"),
])
def test_terminals(open_terminal, term, more, sign):
    terminal = open_terminal(80, 24, term=term, **more)
    terminal.start()
    terminal.until(READY)
    screen = terminal.screen("-e")
    assert sign in screen
    has_colours = bool(re.search(r"\x1b\[(\d+;)*3[1-7]m", screen))
    assert has_colours == (term != "vt100" and "NO_COLOR" not in more)
    terminal.keys("Down", "Enter")
    terminal.until("process ")
    terminal.type("qq")
    terminal.until(PROMPT)


@pytest.mark.parametrize("term,problem", [
    ("no-such-terminal", "this machine does not know the terminal TERM=no-such-terminal"),
    ("dumb", "the terminal TERM=dumb cannot place its cursor"),
])
def test_unusable_terminal(open_terminal, term, problem):
    terminal = open_terminal(160, 24, term=term)
    terminal.start()
    terminal.until(f"(^|\n)tidemark: {problem}; try: "
                   "TERM=xterm-256color tidemark top, or: tidemark top --once\n")
    terminal.type("echo status=$?\n")
    terminal.until("status=2\n")


def run_top(machine, *arguments, **more):
    return subprocess.run([str(BUILD / "tidemark"), "top", *arguments], capture_output=True,
                          text=True, timeout=60, check=False, env=machine.environment(**more))


def test_ps(machine, open_terminal):
    """It fits the screen: columns are left out, and the beginnings of folders; all of it is in a
    pipe."""
    kit, pids = machine
    for width, titles in [(80, "PID RANK DEVICE ALLOCATED PEAK FORECAST RUN"),
                          (160, "PID RANK DEVICE ALLOCATED RESERVED PEAK STEP FORECAST RUN")]:
        terminal = open_terminal(width, 24)
        terminal.type(f"clear; {BUILD}/tidemark ps --sort peak; echo done=$?\n")
        lines = terminal.until("done=0").split("\n")
        assert lines[0].split() == titles.split()
        ours = [line for line in lines if line.split()[:1] in [[pid] for pid in pids]]
        assert [line.rsplit("/", 1)[1] for line in ours] == ["tune.tmk", "train.tmk"]
        whole = str(kit.folder / "tune.tmk")
        assert (" " + whole in ours[0]) == (width == 160)
    done = subprocess.run([str(BUILD / "tidemark"), "ps"], capture_output=True, text=True,
                          timeout=60, check=True)
    assert done.stdout.split("\n")[0].split() == titles.split()
    rows = [line.split() for line in done.stdout.split("\n")]
    assert [[pid, "0" if pid == min(pids, key=list(pids).index) else "-"]
            for pid in sorted(pids, key=int)] == [row[:2] for row in rows if row[:1] and
                                                  row[0] in pids]


def test_no_terminal(machine):
    done = run_top(machine[0])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ("tidemark: this needs a terminal; for a file or a pipe: "
                           "tidemark top --once\n")


# ---- for scripts

def test_json(machine):
    kit, pids = machine
    first, second = map(int, pids)
    done = kit.once("--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert list(found) == ["host", "problem", "devices", "processes", "jobs"]
    assert (found["host"], found["problem"]) == (os.uname().nodename, None)
    assert found["devices"][2] == {
        "device": "2", "kind": "nvidia", "name": "NVIDIA H100 80GB HBM3", "id": "GPU-2",
        "total": 80 * GIB, "used": 76 * GIB + GIB // 4, "reserved": GIB // 2, "reason": None,
        "processes_left_out": 0, "processes_reason": None,
        "utilization": 3, "power": 120.0, "power_limit": None, "temperature": 40}
    assert found["devices"][8]["processes_left_out"] is None
    assert found["devices"][8]["device"] == "host" and len(found["devices"]) == 9
    assert (found["devices"][8]["total"], found["devices"][8]["used"]) == (512 * GIB, 64 * GIB)
    processes = {row["pid"]: row for row in found["processes"]}
    assert sorted(processes) == sorted([first, second, 40001, 40002])
    assert processes[40001] == {
        "pid": 40001, "user": processes[first]["user"],
        "command": f"serve-{OURS} --model llama-70b", "watched": False,
        "used": 146 * GIB + 3 * GIB // 4, "host": 12 * GIB,
        "devices": [{"device": "2", "used": 76 * GIB + GIB // 4},
                    {"device": "3", "used": 70 * GIB + GIB // 2}]}
    jobs = {row["pid"]: row for row in found["jobs"]}
    assert jobs[first] == {
        "pid": first, "rank": 0, "run": str(kit.folder / "train.tmk"), "device": "cuda:0",
        "allocated": 32 * GIB, "reserved": None, "peak": 38 * GIB, "step": 39,
        "forecast": None, "command": f"/usr/bin/python3 train-{OURS}.py 40 0",
        "step_ns": jobs[first]["step_ns"], "bytes_per_step": 0}
    assert (jobs[second]["rank"], jobs[second]["peak"], jobs[second]["step"]) == (None, 46 * GIB, 6)


def test_parts_of_a_card(tmp_path):
    """A process on a part is counted there alone, though its card lists it too."""
    machine = Machine(tmp_path)
    try:
        machine.write("cards", f"driver 580.95.05\ncuda 13000\ndevice {80 * GIB} A100\n"
                      f"migmode 1\nprocess 40001 {GIB}\nmig {10 * GIB} A100 MIG 1g.10gb\n"
                      f"process 40001 {GIB}\n")
        machine.add_process(40001, [f"serve-{OURS}"])
        found = json.loads(machine.once("--json").stdout)
    finally:
        machine.close()
    assert [device["device"] for device in found["devices"]] == ["0", "0:0", "host"]
    assert [(row["pid"], row["used"], row["devices"]) for row in found["processes"]
            if not row["watched"]] == [(40001, GIB, [{"device": "0:0", "used": GIB}])]


def test_processes_that_cannot_be_listed(tmp_path):
    machine = Machine(tmp_path)
    try:
        machine.write("cards", f"driver 580.95.05\ncuda 13000\ndevice {80 * GIB} A100\n"
                      f"process 40001 {GIB}\nfail nvmlDeviceGetComputeRunningProcesses_v3 4\n")
        card = json.loads(machine.once("--json").stdout)["devices"][0]
        text = machine.once().stdout.split("\n")
    finally:
        machine.close()
    assert (card["used"], card["processes_left_out"], card["processes_reason"]) == (
        GIB, None, "NVML, card 0: Insufficient Permissions (4)")
    assert text[1] == (" who uses device 0 is not known: "
                       "NVML, card 0: Insufficient Permissions (4)")


def test_more_processes_than_are_listed(tmp_path):
    machine = Machine(tmp_path)
    try:
        machine.set_cards([("A100", 80, [(40001 + i, 0.03125) for i in range(2000)])])
        card = json.loads(machine.once("--json").stdout)["devices"][0]
        text = machine.once().stdout.split("\n")
    finally:
        machine.close()
    assert (card["processes_left_out"], card["processes_reason"]) == (1488, None)
    assert text[1] == " 1,488 more processes on device 0: those that use least are not listed"


@pytest.mark.parametrize("columns", [80, 120])
def test_once(machine, columns):
    kit, pids = machine
    done = kit.once(COLUMNS=str(columns))
    assert (done.returncode, done.stderr) == (0, "")
    check(f"once_{columns}", done.stdout, pids)


def test_broken_driver(machine):
    done = machine[0].once("--json", FAKE_CUDA_STATE="/no/such/file")
    problem = json.loads(done.stdout)["problem"]
    assert problem and problem.endswith("; see: tidemark doctor")


@pytest.mark.parametrize("arguments,message", [
    (["--json"], "--json goes with --once: tidemark top --once --json"),
    *((["--interval", word], f"--interval: '{word}' is no time from 0.1 to 3600 seconds: "
       "1, 0.5, 500ms") for word in ("0", "x", "1e3", "0x10", "99ms", "3601", "61min", "-1", "",
                                               "1" + "x" * 40, "0" * 40 + "1x")),
])
def test_usage(machine, arguments, message):
    done = run_top(machine[0], *arguments)
    assert (done.returncode, done.stderr) == (2, f"tidemark: {message}\n")


@pytest.mark.parametrize("word", ["1", "0.1", "100ms", "2 s", "3600", "60min", "1h"])
def test_interval(machine, word):
    assert machine[0].once("--interval", word).returncode == 0


def test_a_job_that_ends_goes(machine, open_terminal):
    kit, _ = machine
    pid = kit.job("short", 2)
    terminal = open_terminal(80, 24, "--interval", "0.2")
    terminal.start()
    terminal.until("5 processes, 3 watched")
    os.kill(pid, signal.SIGKILL)
    start = time.monotonic()
    terminal.until(READY)
    assert time.monotonic() - start < 15
