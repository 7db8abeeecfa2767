# SPDX-License-Identifier: MIT
"""A disk that hangs holds neither the first event nor the end of a program for longer than a second;
what is missing is counted or said."""
import subprocess
import time

import pytest
from fault_kit import program

SLOW = "the disk did not answer within a second"
MOST_TRIES = 4


def run(watch, call, limit_s, *args):
    """What `run` said, and the seconds that it took, once within the limit: the machine may be busy."""
    tries = []
    while len(tries) < MOST_TRIES and not any(seconds < limit_s for seconds, _ in tries):
        watch.run = watch.folder / f"{len(tries)}.tmk"
        tries.append(run_once(watch, call, *args))
    seconds, said = min(tries)
    assert seconds < limit_s, said
    return seconds, said


def run_once(watch, call, *args):
    slow = f'LD_PRELOAD="$LD_PRELOAD {program("slow_disk.so")}" SLOW_DISK={call} exec "$@"'  # not for `run` itself
    began = time.monotonic()
    done = subprocess.run([program("tidemark"), "run", "-o", watch.run, "--", "sh", "-c", slow, "sh",
                           program("sandboxed"), *args], env=watch.environment(preload=False),
                          capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    return time.monotonic() - began, done.stderr


def figures(watch):
    text = watch.tidemark("query", "--format", "csv", watch.run, "SELECT allocations, dropped, state FROM processes")
    allocations, dropped, state = text.splitlines()[1].split(",")
    return int(allocations), int(dropped), state


def test_arming_hangs(watch):
    """The folder cannot be made: a second for the first event, none for the end."""
    seconds, said = run(watch, "mkdir:1:30", 4, "late", "tsync", "none")
    assert seconds > 0.9
    assert f": {SLOW}\n" in said and "nothing was recorded: process " in said


def test_arming_is_slow(watch):
    """It is there after a while: what came until then is counted as dropped."""
    _, said = run(watch, "mkdir:1:2", 6, "slow", "tsync", "none")
    allocations, dropped, state = figures(watch)
    assert state == "closed" and allocations > 0 and dropped >= 200, (allocations, dropped)
    assert "events were dropped" in said


@pytest.mark.parametrize("call", ["pwritev:2:30", "pwritev:5:30", "fdatasync:1:30"])
def test_end_hangs(watch, call):
    """The end waits for a second; the ring is merged, and has it all."""
    _, said = run(watch, call, 4, "late", "tsync", "none")
    assert "nothing was lost" in said, said
    assert figures(watch)[:2] == (10100, 0)
    assert list(watch.rings.iterdir()) == []


def test_forks_do_not_wait(watch):
    """While the run's share of the disk cannot be opened, the program forks as fast as ever."""
    env = dict(watch.environment(preload=True), SLOW_DISK="open:1:4")
    env["LD_PRELOAD"] += " " + program("slow_disk.so")
    tries = []
    while len(tries) < MOST_TRIES and min(tries, default=60) >= 60:  # the machine may be busy
        done = subprocess.run([program("forks"), "slow", "20"], env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        tries.append(float(done.stdout))
    assert min(tries) < 60, tries  # a tenth of a second is what each of them waited for
