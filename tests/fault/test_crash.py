# SPDX-License-Identifier: MIT
"""SIGKILL at random moments: what was reported before it is in the trace, exactly.

The journal program counts each event after its report has returned, in a file of its own. After the
kill the trace must have, lane by lane, at least what was counted and at most one event more, in
order and with the right contents. 200 runs in all.
"""
import os
import random
import select
import signal
import struct
import subprocess
import time

import pytest
from fault_kit import has_tidemark, program

LONG = 10_000_000  # more events than any run lives to report


def start(watch, alone, lanes, pace_ns):
    args, env = watch.command(
        [program("journal"), "steady", watch.journal, lanes, LONG, pace_ns], alone=alone
    )
    return subprocess.Popen(
        args, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


PACES = (1, 3, 9)  # slower where the machine is too busy to pack all of it


def child_of(pid):
    """The one child of a process, waited for."""
    path = f"/proc/{pid}/task/{pid}/children"
    for _ in range(2000):
        with open(path, encoding="ascii") as children:
            pids = children.read().split()
        if pids:
            return int(pids[0])
        time.sleep(0.001)
    raise AssertionError("tidemark run started nothing")


def counted(watch):
    if not watch.journal.exists():
        return 0
    data = watch.journal.read_bytes()
    return sum(int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data), 8))


def examine(watch):
    """How many events were dropped; None when there was nothing to examine."""
    if counted(watch) == 0 and not watch.traces():
        return None  # killed before the first event: nothing was made, or not even the journal
    if not watch.journal.exists():
        return None
    if counted(watch) == 0:
        return 0
    assert watch.traces(), "events were reported and there is no trace"
    figures = watch.check()
    assert figures["merged"] == 1
    return figures["dropped"]


def kill_child(watch, chance, lanes, pace_ns):
    process = start(watch, True, lanes, pace_ns)
    time.sleep(chance)
    process.kill()
    process.wait()


def kill_child_of_run(watch, chance, lanes, pace_ns):
    """`tidemark run` outlives its child and merges at once."""
    process = start(watch, False, lanes, pace_ns)
    child = child_of(process.pid)
    time.sleep(chance)
    os.kill(child, signal.SIGKILL)
    assert process.wait(timeout=20) == 128 + signal.SIGKILL
    if counted(watch) > 0:
        assert list(watch.rings.iterdir()) == []


def kill_both(watch, chance, lanes, pace_ns):
    process = start(watch, False, lanes, pace_ns)
    child = os.pidfd_open(child_of(process.pid))
    time.sleep(chance)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    select.select([child], [], [])  # not ours to wait for, but gone then
    os.close(child)


def kill_run_while_merging(watch, chance, lanes, pace_ns):
    """The child dies first, and `tidemark run` in the middle of clearing up after it."""
    process = start(watch, False, lanes, pace_ns)
    child = child_of(process.pid)
    time.sleep(chance)
    os.kill(child, signal.SIGKILL)
    time.sleep(chance / 10)
    process.kill()
    process.wait()


@pytest.mark.parametrize("lanes,pace_ns", [(1, 1500), (4, 8000)])
@pytest.mark.parametrize(
    "kill,runs,needs_run",
    [
        (kill_child, 40, False),
        (kill_child_of_run, 25, True),
        (kill_both, 25, True),
        (kill_run_while_merging, 10, True),
    ],
)
def test_kill(many_watches, kill, runs, needs_run, lanes, pace_ns):
    if needs_run and not has_tidemark():
        pytest.skip("build/tidemark is not built")
    chance = random.Random(f"{kill.__name__} {lanes}")
    examined = 0
    for _ in range(runs):
        after_s, n_dropped = 0.3 * chance.random() ** 2, 1
        for times in PACES:
            if n_dropped:
                watch = many_watches()
                kill(watch, after_s, lanes, times * pace_ns)
                n_dropped = examine(watch)
        assert not n_dropped, "dropped at every pace"
        examined += n_dropped == 0
    assert examined >= runs // 2


def figures(watch, *front):
    sql = "SELECT allocations, frees, dropped, (SELECT count(*) FROM allocations) FROM processes"
    command = [*front, program("tidemark"), "query", "--format", "csv", str(watch.run), sql]
    done = subprocess.run(command, env=watch.environment(preload=False), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0,
                    reason="NOT RUN: this machine has no mount namespaces for us")
def test_killed_run_that_may_only_be_read(watch):
    """A process dies after some chunks of many that it writes at once. On a read-only mount nobody
    can lock its ring; a reader sees what one does who can."""
    env = dict(watch.environment(preload=True), SLOW_DISK="pwritev:6:2:6")
    env["LD_PRELOAD"] += " " + program("slow_disk.so")
    done = subprocess.run([program("journal"), "steady", watch.journal, "2", str(LONG), "14000"], env=env,
                          capture_output=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    ring, = watch.rings.glob("*.ring")
    epoch, last = struct.unpack("<QQ", ring.read_bytes()[272:288])
    assert epoch % 2 == 1 and last > 0  # in the middle of it
    script = ('for at in "$1" "$2"; do mount --bind "$at" "$at" && mount -o remount,bind,ro "$at" || exit 9; done; '
              'shift 2; exec "$@"')
    seen = figures(watch, "unshare", "-m", "bash", "-c", script, "bash", watch.run, watch.rings)
    assert ring.exists()
    assert seen == figures(watch)
    assert not ring.exists()
    assert watch.check()["dropped"] == 0


def test_reader_beside_living(watch):
    """Reading while it writes disturbs nothing, and shows what has been reported."""
    process = start(watch, True, 2, 10_000)
    seen = looks = 0
    for _ in range(12):
        time.sleep(0.02)
        if not watch.traces():
            continue
        before = counted(watch)
        dump = subprocess.run(
            [program("trace_dump"), watch.traces()[0]], capture_output=True, check=True
        ).stdout
        assert b" drop " not in dump
        assert before <= dump.count(b"\n") <= counted(watch) + 2
        assert dump.count(b"\n") > seen
        seen = dump.count(b"\n")
        looks += 1
    process.kill()
    process.wait()
    assert seen > 10_000 and looks > 6
    assert watch.check()["dropped"] == 0
