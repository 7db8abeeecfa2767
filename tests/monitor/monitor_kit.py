# SPDX-License-Identifier: MIT
"""A machine that is made up: cards by tests/fake_cuda, /proc and /sys by the test, changed while a
monitor looks at it. Nothing here waits for time to pass: a change is settled when the monitor has
read it, which its count of read calls (/proc/PID/io) shows."""
import json
import os
import platform
import signal
import subprocess
import time
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TIDEMARK_BUILD", REPO / "build"))
TIDEMARK = str(BUILD / "tidemark")
GIB, MIB = 1 << 30, 1 << 20
LIMIT_S = 60
SIGTIMEDWAIT = {"x86_64": "128", "aarch64": "137"}[platform.machine()]
READS_A_LOOK = 16  # at most, of three cards and their processes; then all was seen


def fake_cuda():
    places = [BUILD / part / "tests" / "fake_cuda" for part in ("", "gcc")]
    found = [place for place in places if (place / "libnvidia-ml.so.1").exists()]
    assert found, "tests/fake_cuda is not built: run ./dev check first"
    return str(found[0])


class Monitor:
    """A monitor that runs, and has begun to look."""

    def __init__(self, process):
        self.process = process
        self.wait(self.has_begun)
        self.settle()

    def has_begun(self):
        """It holds signals back, or waits for them, which the kernel shows as not holding back."""
        with open(f"/proc/{self.process.pid}/syscall", encoding="ascii") as call:
            is_waiting = call.read().split()[0] == SIGTIMEDWAIT
        held_back = int(self.field("status", "SigBlk:"), 16)
        return is_waiting or held_back >> (signal.SIGINT - 1) & 1

    def field(self, file, name):
        with open(f"/proc/{self.process.pid}/{file}", encoding="ascii") as lines:
            return next(line.split()[1] for line in lines if line.startswith(name))

    def wait(self, is_so):
        deadline = time.monotonic() + LIMIT_S
        while self.process.poll() is None and not is_so():
            assert time.monotonic() < deadline, "the monitor does not look"
            time.sleep(0.002)

    def settle(self, n_looks=2):
        """Wait until everything has been looked at n_looks times more."""
        goal = int(self.field("io", "syscr:")) + READS_A_LOOK * n_looks
        self.wait(lambda: int(self.field("io", "syscr:")) >= goal)

    def end(self, number=signal.SIGINT):
        """(exit status, stdout, stderr) after a signal."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, out, err


class Machine:
    """At most ten cards, or none, and a host of 16 GiB of which a quarter is used."""

    def __init__(self, folder):
        self.folder = folder
        self.started = []
        self.state = folder / "cards"
        self.host(4 * GIB)
        (folder / "sys").mkdir()

    def host(self, used):
        self.put(self.folder / "proc" / "meminfo",
                 f"MemTotal: {16 << 20} kB\nMemAvailable: {(16 * GIB - used) >> 10} kB\n")

    def put(self, path, text):
        """At once: whoever reads meanwhile sees the old text or the new one."""
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".new")
        new.write_text(text, encoding="ascii")
        new.rename(path)

    def cards(self, *cards, size=16 * GIB):
        """Each a list of lines below `device 16 GiB`."""
        self.put(self.state, "driver 580.95.05\ncuda 13000\n" + "".join(
            f"device {size} Card {i}\n" + "".join(line + "\n" for line in lines)
            for i, lines in enumerate(cards)))

    def environment(self):
        kept = {name: value for name, value in os.environ.items()
                if name in ("HOME", "TMPDIR") or name.endswith("SAN_OPTIONS")}
        return {**kept, "PATH": "/usr/bin:/bin", "TZ": "UTC", "LD_LIBRARY_PATH": fake_cuda(),
                "FAKE_CUDA_STATE": str(self.state), "TIDEMARK_PROC_DIR": str(self.folder / "proc"),
                "TIDEMARK_SYS_DIR": str(self.folder / "sys")}

    def run(self, *arguments, **more):
        return subprocess.run([TIDEMARK, *arguments], capture_output=True, text=True, check=False,
                              timeout=LIMIT_S, cwd=self.folder,
                              env={**self.environment(), **more})

    def json(self, *arguments, status=0):
        done = self.run(*arguments)
        assert done.returncode == status, done.stderr
        return json.loads(done.stdout)

    def start(self, *arguments, **more):
        """One that looks 500 times a second, until it is told to end."""
        process = subprocess.Popen([TIDEMARK, *arguments, "--interval", "0.002"], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   cwd=self.folder, env={**self.environment(), **more})
        self.started.append(process)
        return Monitor(process)

    def sweep(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.communicate()


class Uneven(Exception):
    """We were kept waiting for so long that the curve is not the one that was meant."""


def check_even(times):
    gaps = [later - earlier for earlier, later in zip(times, times[1:])]
    if max(gaps) > (times[-1] - times[0]) / 5:
        raise Uneven


def in_peace(try_once):
    """What it returns, the first time that nothing else kept the machine busy."""
    for _ in range(20):
        try:
            return try_once()
        except Uneven:
            pass
    raise AssertionError("this machine is too busy for a curve")


@pytest.fixture(name="machine")
def machine_fixture(tmp_path):
    machine = Machine(tmp_path)
    yield machine
    machine.sweep()
