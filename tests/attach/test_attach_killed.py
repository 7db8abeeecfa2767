# SPDX-License-Identifier: MIT
"""attach killed with SIGKILL at each call that reaches into the target (attach_killer.c counts
ptrace() and pwrite()): the target lives on, computes what it should, ends as it would have, and can
be attached to afterwards."""
import errno
import os
import signal
import subprocess
import sys
import time

import pytest

from attach_kit import TIME_LIMIT_S, program, settled, workshop_fixture  # noqa: F401 (a fixture)

PYTHON = "/usr/bin/python3"
FEWEST_CALLS, MOST_CALLS = 30, 60


class Killer:
    """Attaches to targets and is killed at call `at`."""

    def __init__(self, shop):
        self.shop = shop
        self.n_runs = 0

    def attach(self, pid, at=0, when="before"):
        """What became of it: "killed", or the number of calls that it made in all."""
        self.n_runs += 1
        count = self.shop.folder / f"count{self.n_runs}"
        env = dict(os.environ, TIDEMARK_LIB=str(self.shop.library), ATTACH_KILL_AT=str(at),
                   ATTACH_KILL_WHEN=when, ATTACH_KILL_COUNT=str(count),
                   LD_PRELOAD=program("attach_killer.so"))
        done = subprocess.run([program("tidemark"), "attach", str(pid), "-o",
                               f"killed{self.n_runs}.tmk"], cwd=self.shop.folder, env=env, text=True,
                              capture_output=True, timeout=TIME_LIMIT_S, check=False)
        if done.returncode == -signal.SIGKILL:
            return "killed"
        assert done.returncode == 0, done.stderr
        return int(count.read_text())

    def sweep(self, target, whens=("before", "after")):
        """One target, and attaches killed at every call until one gets through. One that meets
        threads at wrong moments, or places that those before have left taken, makes more calls."""
        for when in whens:
            for at in range(1, MOST_CALLS):
                got = self.attach(target.pid, at, when)
                assert target.process.poll() is None, (
                    f"killed {when} call {at}: the target has ended", target.process.returncode)
                if got != "killed":
                    break
            assert at > FEWEST_CALLS, "calls are not counted"

    def attach_again(self, target):
        """As if nothing had been."""
        said, calls, _ = self.shop.attach(target.pid)
        assert "the library was there already" in said
        assert f" pid {target.pid} main 0 blocked 23 size 1024 memory 1" in calls[0]


@pytest.fixture(name="killer")
def killer_fixture(shop):
    return Killer(shop)


def test_loop(shop, killer):
    """General registers, errno, signal mask and SIGTRAP's disposition."""
    target = shop.target("loop")
    killer.sweep(target, ("before", "after", "late"))
    assert settled(lambda: len(target.threads()), 1, 20) == 1, "a helper thread has not ended"
    killer.attach_again(target)
    assert target.end() == "rounds 1 wrong 0 errno 77 mask 1 trap 1"


def test_vector_registers(shop, killer):
    target = shop.target("vector")
    killer.sweep(target)
    killer.attach_again(target)
    assert target.end() == "wrong 0"


def test_threads(shop, killer):
    target = shop.target("threads", "8")
    killer.sweep(target)
    killer.attach_again(target)
    assert target.end() == "loops 1 errors 0"


def test_signals_are_kept(shop, killer):
    """1,000 queued signals a second and a timer: all come, in order."""
    target = shop.target("signals", "5000")
    killer.sweep(target, ("after", "late"))
    assert target.end() == "signals 1 lost 0 disorder 0 ticks 1 errors 0"


def test_python(shop, killer):
    code = ("import hashlib, math, sys\nprint('ready', flush=True)\nseen = set()\n"
            "import signal\nover = []\nsignal.signal(signal.SIGTERM, lambda *_: over.append(1))\n"
            "while not over:\n"
            "    x = hashlib.sha256(b''.join(b'%d' % (i * i) for i in range(3000))).hexdigest()\n"
            "    seen.add((x, math.fsum(math.sin(i) for i in range(3000))))\n"
            "print(len(seen))\nsys.exit(0)")
    target = shop.start(PYTHON, "-c", code)
    killer.sweep(target)
    killer.attach_again(target)
    assert target.end() == "1"


WAIT_MS = 1500
LATE_MS = 900
SLOW_TRIES = 5


def killed_in_wait(shop, killer, wait, *how):
    """A target whose attach was killed in the first half of its wait, how long that wait is, and how
    long attaching took, in ms. On a busy machine an attach may take longer: then another target waits
    twice as long."""
    for i in range(SLOW_TRIES):
        wait_ms = WAIT_MS << i
        target = shop.target("wait", wait, wait_ms)
        start = time.monotonic()
        assert killer.attach(target.pid, *how) == "killed"
        took_ms = 1000 * (time.monotonic() - start)
        if took_ms < wait_ms / 2:
            return target, wait_ms, took_ms
    return pytest.fail(f"{SLOW_TRIES} attaches took {WAIT_MS / 2:.0f} ms or more each")


def late_ms(controls):
    """How much later than asked for these targets, which nobody touched, ended; the latest."""
    return max(int(control.wait("hello").split()[5]) for control in controls) - WAIT_MS


@pytest.mark.parametrize("wait, result, error", [
    ("sleep", 0, 0), ("poll", 0, 0), ("select", 0, 0), ("futex", -1, errno.ETIMEDOUT),
    ("condition", errno.ETIMEDOUT, 0), ("read", 5, 0)])
def test_waits_go_on(shop, killer, wait, result, error):
    """A wait that is borrowed from and left alone ends with its result, at its time."""
    n_calls = killer.attach(shop.target("wait", wait, "100000").pid)
    assert FEWEST_CALLS < n_calls < MOST_CALLS
    targets, controls = [], []
    for i in range(n_calls):
        if wait != "read":
            controls.append(shop.target("wait", wait, WAIT_MS))
        targets.append(killed_in_wait(shop, killer, wait, i + 1, ("after", "before")[i % 2]))
    late = late_ms(controls) if controls else 0
    for i, (target, wait_ms, attach_ms) in enumerate(targets):
        said = target.wait("hello" if wait == "read" else None).split()
        assert said[:5] == ["result", str(result), "errno", str(error), "after"], f"call {i + 1}"
        if wait != "read":
            assert wait_ms - 10 <= int(said[5]) < wait_ms + LATE_MS + late + attach_ms, (
                f"call {i + 1}")


def waiting_target(shop, *arguments):
    """A target that has come to its wait."""
    target = shop.target("wait", *arguments)

    def state():
        with open(f"/proc/{target.pid}/stat", encoding="utf-8") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0]

    assert settled(state, "S") == "S"
    return target


def ends_by(target, number):
    """Send a signal: what the target says at its end; None if the wait outlives the signal. It ends
    by another one then. stdin stays as it is."""
    target.process.send_signal(number)
    try:
        assert target.process.wait(TIME_LIMIT_S / 20) == 0
        return target.process.stdout.read().split()
    except subprocess.TimeoutExpired:
        target.process.send_signal(number)
        assert target.process.wait(TIME_LIMIT_S) == 0
        return None


@pytest.mark.parametrize("wait", ["sleep", "poll", "select", "epoll", "futex", "read"])
def test_signal_ends_wait(shop, killer, wait):
    """A handler that runs while the thread is on its way back ends the wait as it would have. One
    that comes between the thread's last look and its system call, which takes a microsecond if
    nothing keeps the thread from running, does not (docs/troubleshooting.md): rarely, and not at the
    same call time and again."""
    n_calls = killer.attach(shop.target("wait", wait, "100000").pid)
    for i in range(n_calls):
        said, n_tries = None, 0
        while said is None and n_tries < 3:
            target = waiting_target(shop, wait, "100000")
            assert killer.attach(target.pid, i + 1, "after") == "killed"
            said = ends_by(target, signal.SIGTERM)
            n_tries += 1
        assert said and said[:4] == ["result", "-1", "errno", str(errno.EINTR)], f"call {i + 1}"


def test_signal_restarts_read(shop, killer):
    """Not so one with SA_RESTART."""
    n_calls = killer.attach(shop.target("wait", "read", "0").pid)
    for i in range(n_calls):
        target = waiting_target(shop, "read", "0")
        assert killer.attach(target.pid, i + 1, "after") == "killed"
        target.process.send_signal(signal.SIGUSR1)
        assert target.wait("hello").startswith("result 5 errno 0 after "), f"call {i + 1}"


def test_ends_while_abandoned(shop, killer):
    """A program that goes on to its end has its ordinary status, whatever is left in it."""
    for at in range(1, MOST_CALLS):
        target = shop.target("idle")
        if killer.attach(target.pid, at, "after") != "killed":
            break
        assert target.end() == "ended", f"call {at}"
    assert at > FEWEST_CALLS


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
