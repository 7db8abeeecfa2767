# SPDX-License-Identifier: MIT
"""What the processes of a run take together: /dev/shm, memory, disk; and what they leave behind.

The programs here fork many workers, as data loaders do. Watched, each runs as it does alone, in a
/dev/shm as small as a container's and on a disk that is nearly full.
"""
import contextlib
import ctypes
import json
import os
import random
import re
import resource
import signal
import socket
import statistics
import struct
import subprocess
import sys
import time
import timeit
from pathlib import Path

import pytest
from fault_kit import program, unmount
from test_limits import mount_tmpfs, needs_root, status_of

MIB = 1 << 20
ALONE = pytest.mark.parametrize("alone", [True, False], ids=["preload", "run"])
BUDGET = 12  # why recording stopped: TMK_STOP_BUDGET

def forks(*args):
    return [program("forks"), *map(str, args)]


@contextlib.contextmanager
def rings_in(watch, size):
    """The folder for rings is a tmpfs of that size."""
    folder = watch.folder / "memory"
    mount_tmpfs(folder, size)
    rings, watch.rings = watch.rings, folder
    try:
        yield folder
    finally:
        watch.rings = rings
        unmount(folder)


@pytest.fixture
def small_memory(watch):
    """As /dev/shm is in a container."""
    with rings_in(watch, "64m"):
        yield watch


def totals(watch):
    """(processes, allocations, dropped) of the run."""
    sql = "SELECT count(*), sum(allocations), sum(dropped) FROM processes"
    out = watch.tidemark("query", watch.run, "--format", "csv", sql)
    return tuple(map(int, out.splitlines()[1].split(",")))


@needs_root
@ALONE
@pytest.mark.parametrize("end", ["_exit", "kill", "exit"])
def test_many_workers(small_memory, end, alone):
    """200 workers one after the other: never more than 8 MiB of 64, nothing lost, nothing left."""
    watch = small_memory
    done = watch(*forks("workers", 200, end), alone=alone)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("done ") and int(done.stdout.split()[1]) < 8 * MIB, done.stdout
    if end != "kill" or not alone:  # else the rings of the last ones wait for a reader
        assert list(watch.rings.iterdir()) == []
    assert totals(watch) == (200, 600, 0)
    assert list(watch.rings.iterdir()) == []


@needs_root
def test_living_workers(watch):
    """90 workers at once, all alive: they share a tenth of 44 MiB, which is not enough, then the
    disk's share."""
    with rings_in(watch, "44m") as rings:
        done = watch(*forks("crowd", 90), alone=True)
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) < 5 * MIB
        assert totals(watch) == (90, 270, 0)
        assert list(rings.iterdir()) == []


@needs_root
def test_locked_memory(small_memory):
    """mlockall(MCL_FUTURE): memory is what is used, not what is reserved."""
    watch = small_memory
    done = watch(*forks("locked", 8), alone=True)
    assert done.returncode == 0, done.stderr
    shared, resident = map(int, done.stdout.split())
    assert shared < 5 * MIB and resident < 64 * MIB, done.stdout
    assert totals(watch) == (9 if shared == 0 else 8, 24, 0)


@needs_root
def test_huge_pages(watch):
    """A tmpfs that gives 2 MiB where 4 KiB are asked for: not to us."""
    try:
        with rings_in(watch, "64m,huge=always"):
            done = watch(*forks("crowd", 20), alone=True)
            assert done.returncode == 0, done.stderr
            assert int(done.stdout) < 5 * MIB
    except pytest.skip.Exception:
        pytest.skip("NOT RUN: no tmpfs with huge pages here")


@needs_root
@ALONE
def test_tenth_of_the_disk_for_all(watch, alone):
    """16 children that record a lot on a disk of 100 MiB: the job's own 80 MiB are saved."""
    disk = watch.folder / "disk"
    mount_tmpfs(disk, "100m")
    try:
        watch.run = disk / "a.tmk"
        done = watch(*forks("hogs", 16, 300_000, disk / "checkpoint", 80, "exit"), alone=alone)
        assert (done.returncode, done.stdout) == (0, "saved\n"), done.stderr
        used = sum(file.stat().st_blocks * 512 for file in watch.run.iterdir())
        assert used <= 11 * MIB
        states = [status_of(trace)[:2] for trace in watch.traces()]
        assert set(states) <= {(2, BUDGET), (1, 0)} and (2, BUDGET) in states
        assert list(watch.rings.iterdir()) == []
        assert "share of the disk" in watch.check_ok()
    finally:
        unmount(disk)


@needs_root
@pytest.mark.parametrize("way", ["host", "rings"])
def test_tenth_of_the_disk_for_containers(watch, way):
    """The processes of a run count together for the disk, whatever host they are on by name, and
    wherever each has its ring."""
    disk = watch.folder / "disk"
    mount_tmpfs(disk, "100m")
    each = {"host": f"unshare --uts sh -c 'hostname pod$i; exec {program('forks')} hogs 4 200000 {disk}/x$i 0 exit'",
            "rings": f"mkdir -m 700 {watch.rings}/$i; TIDEMARK_RING_DIR={watch.rings}/$i {program('forks')} "
                     f"hogs 4 200000 {disk}/x$i 0 exit"}[way]
    try:
        watch.run = disk / "a.tmk"
        script = f"for i in 1 2 3 4; do ({each}) & done; wait; exec {program('forks')} hogs 0 0 {disk}/checkpoint 80 exit"
        done = watch("sh", "-c", script)
        assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "saved"), done.stderr
        assert sum(file.stat().st_blocks * 512 for file in watch.run.iterdir()) <= 11 * MIB
    finally:
        unmount(disk)


@needs_root
@ALONE
def test_what_killed_workers_leave_counts(watch, alone):
    """300 workers that are killed before their events are packed: `run` merges their rings while
    the program runs. What that writes counts, too; rings for which there is no room stay where they
    are, and are read from there."""
    disk = watch.folder / "disk"
    mount_tmpfs(disk, "100m")
    try:
        with rings_in(watch, "2g"):
            watch.run = disk / "a.tmk"
            done = watch(*forks("hogs", 300, 20_000, disk / "checkpoint", 80, "kill"), alone=alone)
            assert (done.returncode, done.stdout) == (0, "saved\n"), done.stderr
            told = watch.tidemark("query", watch.run, "--format", "csv",
                                  "SELECT state, events, dropped FROM processes")
            used = sum(file.stat().st_blocks * 512 for file in watch.run.iterdir())
            assert used <= 11 * MIB
            rows = [line.split(",") for line in told.splitlines()[1:]]
            refused = (watch.run / "refused").read_text().splitlines()
            assert len(rows) + len(refused) == 300
            checked = watch.check_ok()
            for state, events, dropped in rows:
                n_drops = int(events) + int(dropped) - 25_000  # "so many were dropped" is an event, too
                assert state != "closed" or (0 < n_drops < 10 if int(dropped) else n_drops == 0), rows
            assert checked.count("its ring had no file") == sum(row[0] == "open" for row in rows)
    finally:
        unmount(disk)


@needs_root
def test_the_job_fills_the_disk(watch):
    """The share shrinks while the program itself takes the disk: its writes succeed to the end."""
    disk = watch.folder / "disk"
    mount_tmpfs(disk, "60m")
    try:
        watch.run = disk / "a.tmk"
        done = watch(*forks("filler", 60, disk / "data"), alone=True)
        assert done.returncode == 0, done.stderr
        written = int(done.stdout.split()[-1])
        taken = sum(file.stat().st_blocks * 512 for file in watch.run.iterdir())
        assert written + taken > 58 * MIB and taken < 6 * MIB, (written, taken)
    finally:
        unmount(disk)


@needs_root
def test_losses_of_all_are_said(watch):
    """The summary is about the process with the largest peak. What others have lost, it says too."""
    with rings_in(watch, "48m"):
        script = f"{program('forks')} hogs 4 400000 {watch.folder}/saved 1 kill; {program('forks')} large"
        args = [program("tidemark"), "run", "-o", str(watch.run), "--", "sh", "-c", script]
        done = subprocess.run(args, env=watch.environment(preload=False), capture_output=True, text=True, check=False)
        dropped = totals(watch)[2]
        assert done.returncode == 0 and dropped > 0
        said = " ".join(done.stderr.split())
        assert f"in 4 other processes: {dropped:,} events dropped (tidemark check says in which)" in said
        assert "nothing was lost" not in said


@needs_root
@pytest.mark.parametrize("owner", [65534, 0], ids=["other", "own"])
def test_account_that_somebody_else_made(watch, owner):
    """In a folder for all, another user can make the file first. It is not used and holds nobody up."""
    with rings_in(watch, "1g") as rings:
        rings.chmod(0o1777)
        args, env = watch.command(forks("wait", 3), alone=True)
        with subprocess.Popen(args, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
            first.stdout.readline()
            (account,) = rings.glob("*.account")
            first.communicate("\n")
        assert list(rings.iterdir()) == []
        account.touch(mode=0o666)
        os.chown(account, owner, owner)
        if owner == 0:
            os.link(account, rings / "other-name")  # an own file with another name: not an account
            account.write_text("precious")
        seconds = []
        while len(seconds) < 10 and min(seconds, default=1) >= 0.5:  # the machine may be busy
            start = time.monotonic()
            done = watch(*forks("workers", 5, "_exit"), alone=True)
            seconds.append(time.monotonic() - start)
            assert done.returncode == 0, done.stderr
        assert min(seconds) < 0.5
        assert totals(watch) == (1 + 5 * len(seconds), 3 + 15 * len(seconds), 0)
        assert account.read_text() == ("" if owner else "precious")


@pytest.mark.parametrize("launch", [[], ["launch", "errno:close_range", "--"]], ids=["new", "old"])
def test_sweeping_keeps_no_descriptor(watch, launch):
    """While siblings live, a thread looks for rings of dead ones, with descriptors of its own. Before
    Linux 5.9 it begins with a copy of the program's."""
    for i in range(5000):  # that take a while to be looked at
        (watch.rings / f"tidemark.9.{i}.ring").touch()
    front = [program("sandboxed"), *launch] if launch else []
    args, env = watch.command([*front, *forks("pipes", 5000)], alone=True)
    done = subprocess.run(args, env=dict(env, TIDEMARK_SECCOMP="trust"), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    for file in watch.rings.glob("tidemark.9.*"):
        file.unlink()


def test_small_child(watch):
    """A child that reports three blocks takes less than 1 MiB of memory, of either kind."""
    done = watch(*forks("cost"), alone=True)
    assert done.returncode == 0, done.stderr
    shared, private = map(int, done.stdout.split())
    assert shared < MIB // 4
    assert private < MIB


@pytest.mark.parametrize("parent", [0, 1])
def test_small_child_counts(watch, parent):
    """What it costs in time, counted: pages that are touched for the first time (161 were measured,
    25 without us) and times it waits for something (6, 1)."""
    plain = subprocess.run(forks("counts", parent), capture_output=True, text=True, check=True).stdout
    done = watch(*forks("counts", parent), alone=True)
    assert done.returncode == 0, done.stderr
    faults, waits = (ours - alone for ours, alone in zip(map(int, done.stdout.split()), map(int, plain.split())))
    assert faults < 250 and waits < 40, (done.stdout, plain)
    assert totals(watch) == (1 + parent, 3 + 3 * parent, 0)


def trace_says(watch, key):
    """What the header of the only trace says."""
    (trace,) = watch.traces()
    return re.search(key.encode() + rb"=([^\n]*)\n", trace.read_bytes()[:4096])[1].decode()


def test_memory_by_small_pages(watch):
    """With transparent_hugepage=always each table of the recorder would take 2 MiB for its first byte:
    6 MiB of a small child, and as much time again as all else that it costs. None may."""
    args, env = watch.command(forks("wait", 3), alone=True)
    with subprocess.Popen(args, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"ready\n"
        maps = re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", Path(f"/proc/{child.pid}/smaps").read_text())[1:]
        child.communicate(b"\n")
    found = []
    for text in maps:
        first, last = (int(end, 16) for end in text.split(" ")[0].split("-"))
        flags = re.search(r"VmFlags: (.*)", text)[1].split()
        if last - first >= 2 * MIB and {"wr", "nr"} <= set(flags):  # MAP_NORESERVE, which the program has none of
            found.append("nh" in flags)
    assert found and all(found)


def test_control_socket_is_in_memory(watch):
    """A disk would have to make and remove it with each child."""
    args, env = watch.command(forks("wait", 3), alone=True)
    with subprocess.Popen(args, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"ready\n"
        path = trace_says(watch, "control")
        kind = subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True, text=True, check=True)
        child.communicate(b"\n")
    assert kind.stdout == "tmpfs\n" and not os.path.exists(path)


def test_busy_process_grows(watch):
    """Rings begin small, and a burst loses nothing."""
    done = watch.without_drops(lambda pace_ns: watch.report("steady", 4, 50_000, pace_ns, alone=True),
                               500, 1000, 2000, 4000)
    assert done.returncode == 0
    figures = watch.check("--exact")
    assert figures == {**figures, "events": 200_000, "dropped": 0}


@needs_root
@pytest.mark.parametrize("threads, burst", [(24, 6000), (30, 0), (40, 20_000)])
def test_threads_that_hold_pages_of_a_disk_ring(watch, threads, burst):
    """Most pages are held by threads that report nothing more. Whoever finds none free gets one soon."""
    with rings_in(watch, "40m"):  # too little for rings
        done = watch.without_drops(lambda pause_ms: watch(*forks("holders", threads, burst, 200, pause_ms), alone=True),
                                   5, 10, 20)
        assert done.returncode == 0, done.stderr
        assert totals(watch) == (1, threads + burst + 200 * 60, 0)


@needs_root
@pytest.mark.parametrize("threads", [2, 3])
def test_threads_that_hold_pages_when_the_budget_is_spent(watch, threads):
    """A ring of four pages cannot grow, and threads hold all but one or two: those are emptied in time."""
    with rings_in(watch, "1g") as rings:

        def hold_pages(pause_ms):
            args, env = watch.command(forks("wait", 3), alone=True)
            with subprocess.Popen(args, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
                assert first.stdout.readline() == b"ready\n"
                (account,) = rings.glob("*.account")
                time.sleep(0.5)  # its own ring grows a little
                with open(account, "r+b") as file:
                    (limit,) = struct.unpack_from("<8xQ", file.read())
                    file.seek(16)
                    file.write(struct.pack("<Q", limit - 4096 - 4 * 16384))
                done = watch(*forks("holders", threads - 1, 0, 400, pause_ms), alone=True)
                assert struct.unpack_from("<8s3Q", account.read_bytes())[3] == 2  # both rings in memory
                first.communicate(b"\n")
            return done

        done = watch.without_drops(hold_pages, 5, 15, 40)
        assert done.returncode == 0, done.stderr
        assert totals(watch) == (2, 3 + threads - 1 + 400 * 60, 0)


@needs_root
def test_child_drops_its_user(watch):
    """A child that cannot reach the run folder records nothing, and harms nothing of its parent's."""
    done = watch(*forks("dropper"), alone=True)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    assert totals(watch) == (1, 3, 0)


@needs_root
def test_moved_run_keeps_to_its_share(watch):
    """The run folder is renamed while it is recorded into: recording goes on, within the tenth."""
    disk = watch.folder / "disk"
    mount_tmpfs(disk, "100m")
    try:
        watch.run = disk / "a.tmk"
        done = watch(*forks("moved", watch.run, disk / "b.tmk", 3_000_000), alone=True)
        assert done.returncode == 0, done.stderr
        watch.run = disk / "b.tmk"
        used = sum(file.stat().st_blocks * 512 for file in watch.run.iterdir())
        assert 2 * MIB < used <= 11 * MIB
    finally:
        unmount(disk)


def test_history_when_the_disk_fills(watch):
    """The run's share becomes less than the trace has: it goes round in what it has, from checkpoints
    that fit, and the blocks alive are still known."""
    flag = watch.folder / "full"
    env = {"LD_PRELOAD": f"{program('libtidemark.so')} {program('small_disk.so')}", "SMALL_DISK_FLAG": str(flag)}

    def churn(pause_us):
        flag.unlink(missing_ok=True)
        return watch(*forks("churn", 4_000_000, flag, pause_us), alone=True, env=env)

    done = watch.without_drops(churn, 2000, 5000, 12_000)
    assert done.returncode == 0, done.stderr
    (trace,) = watch.traces()
    assert 4 * MIB < trace.stat().st_size < 20 * MIB
    assert totals(watch) == (1, 4_002_000, 0)
    sql = "SELECT count(*), sum(size) FROM allocations WHERE free_ns IS NULL"
    out = watch.tidemark("query", watch.run, "--format", "csv", sql)
    assert out.splitlines()[1] == f"2000,{2000 * 64}"
    watch.check_ok()


def account_of(watch):
    """(memory in use, disk in use) that the run's accounts say."""
    (path,) = watch.rings.glob("*.account")
    (disk,) = watch.run.glob("tidemark.*.disk")
    return struct.unpack_from("<8sQQ", path.read_bytes())[2], struct.unpack_from("<8sQ", disk.read_bytes())[1]


def test_account_says_what_is_there(watch):
    """After kills, rescues and merges: memory is that of the rings, disk that of the run's files."""
    args, env = watch.command(forks("wait", 3), alone=True)
    child = subprocess.Popen(args, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    for _ in range(2):
        watch(*forks("parent", 10, 1), alone=True)  # rings of the killed are moved to the run folder
        totals(watch)  # and merged
    (ring,) = watch.rings.glob("*.ring")
    memory, disk = account_of(watch)
    assert memory == ring.stat().st_blocks * 512
    files = sum(file.stat().st_size for file in watch.run.iterdir())
    assert files <= disk <= files + 64 * 8192  # whole blocks, and what living traces have ahead
    child.communicate(b"\n")
    assert child.returncode == 0


# ---- what is left behind


def files_told(watch, *flags):
    """How many rings and accounts doctor tells of, or removes. Sockets lie in a folder for all."""
    out = watch.tidemark("doctor", *flags)
    found = re.search(r"(\d+) rings? of killed processes .*, (\d+) accounts?,", out)
    assert found or "nothing left behind" in out or "could not be merged" in out, out
    return sum(map(int, found.groups())) if found else 0


def test_killed_while_arming(watch):
    """SIGKILL at every moment of arming: what stays is found, told and removed."""
    args, env = watch.command(forks("few", 3), alone=True)
    told = files_told(watch)  # of other tests, which may lie in /dev/shm
    random.seed(20)
    whole_s = statistics.median(timeit.repeat(lambda: subprocess.run(args, env=env, check=True), number=1, repeat=5))
    subprocess.run(["rm", "-rf", watch.run], check=True)
    n_killed, left = 0, []
    while n_killed < 60 or (not left and n_killed < 600):
        child = subprocess.Popen(args, env=env, stdout=subprocess.DEVNULL)
        time.sleep(random.uniform(0.1, 1) * whole_s)
        child.kill()
        child.wait()
        n_killed += 1
        left = [path.name for path in watch.rings.iterdir()]
    assert left  # some were killed in the middle of it
    subprocess.run(["rm", "-rf", watch.run], check=True)  # nobody will read those traces
    assert files_told(watch) == told + len(left), left
    watch.tidemark("doctor", "--clean")
    assert list(watch.rings.iterdir()) == []
    assert files_told(watch) == 0


@pytest.mark.parametrize("call", [1, 2])
def test_killed_before_the_trace_has_a_header(watch, call):
    """What it leaves is no trace, and `run` removes it and says so."""
    killed = f'SLOW_DISK=pwritev:{call}:kill LD_PRELOAD="$LD_PRELOAD {program("slow_disk.so")}" {program("forks")} few 3'
    script = f"for i in 1 2 3; do {killed}; done; {program('forks')} few 3"
    done = subprocess.run([program("tidemark"), "run", "-o", watch.run, "--", "bash", "-c", script],
                          env=watch.environment(preload=False), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(watch.rings.iterdir()) == []
    assert sorted({path.suffix for path in watch.run.iterdir()} - {".trace"}) == ([""] if call == 1 else [])
    assert totals(watch) == ((1, 3, 0) if call == 1 else (4, 12, 0))
    checked = watch.check_ok()
    assert ("it ended before its recording had begun" in checked) == (call == 1)
    assert ("and 2 others: it ended before its recording had begun" in " ".join(done.stderr.split())) == (call == 1)


def free_all_pages(ring):
    """The ring as it is before the first event: docs/format.md 3."""
    with open(ring, "r+b") as file:
        for at in range(4096, os.path.getsize(ring), 16384):
            file.seek(at)
            file.write(bytes(4))


@pytest.mark.parametrize("way", ["run", "clean"])
@pytest.mark.parametrize("full", [False, True], ids=["empty", "full"])
def test_ring_without_trace(watch, full, way):
    """Rings whose traces were removed: the next run removes those without events, doctor --clean
    all."""
    assert watch.report("exit_now", 1, 100, alone=True).returncode == 7
    ring, = watch.rings.glob("*.ring")
    if not full:
        free_all_pages(ring)
    for trace in watch.traces():
        trace.unlink()
    told = watch.tidemark("doctor")
    assert "1 ring of killed processes (1 without a trace)" in told
    assert ("; 1 ring with events that no trace has" in " ".join(told.split())) == full
    if way == "clean":
        watch.tidemark("doctor", "--clean")
    else:
        watch("true")
    assert list(watch.rings.iterdir()) == ([ring] if full and way == "run" else [])


@pytest.mark.parametrize("days", [0, 2])
def test_ring_of_a_renamed_run(watch, days):
    """The user renames the run of a killed process, and starts the next one: no event is lost."""
    assert watch.report("exit_now", 1, 100, alone=True).returncode == 7
    ring, = watch.rings.glob("*.ring")
    watch.run.rename(watch.folder / "kept.tmk")
    os.utime(ring, (time.time() - days * 86400,) * 2)
    for _ in range(2):
        assert watch(*forks("few", 3)).returncode == 0
    watch.run = watch.folder / "kept.tmk"
    figures = watch.check("--exact")
    assert figures == {**figures, "events": 100, "dropped": 0}


def fill(path):
    """The disk, to its last block."""
    with open(path, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)


def leftovers_told(watch, *flags):
    """(grade, all of what doctor says of them)."""
    checks = json.loads(watch.tidemark("doctor", "--json", *flags))["checks"]
    (found,) = (check for check in checks if check["name"] == "leftovers")
    return found["grade"], f"{found['text']} / {found['fix']}"


@needs_root
def test_clean_on_a_full_disk(watch):
    """The ring stays, and doctor says so, and what to do; then it does what it is asked to."""
    disk = watch.folder / "disk"
    mount_tmpfs(disk, "8m")
    try:
        watch.run = disk / "a.tmk"
        assert watch.report("exit_now", 1, 20_000, alone=True).returncode == 7
        fill(disk / "filler")
        for _ in range(2):
            grade, said = leftovers_told(watch, "--clean")
            assert grade == "fair" and re.match(r"1 ring \([\d.]+ [KM]iB\) could not be merged: .* share of the disk", said)
            assert "make room" in said and "nothing left behind" not in said
            assert len(list(watch.rings.glob("*.ring"))) == 1
        (disk / "filler").unlink()
        grade, said = leftovers_told(watch, "--clean")
        assert grade == "ok" and said.startswith("removed 1 ring of killed processes (0 without"), said
        assert watch.check("--exact")["events"] == 20_000
    finally:
        unmount(disk)


@needs_root
@pytest.mark.parametrize("way", ["foreign", "damaged", "readonly"])
def test_clean_what_cannot_be_merged(watch, way):
    """doctor says which run it is, and why; rings of others are merged all the same."""
    disk = watch.folder / "disk"
    mount_tmpfs(disk, "64m")
    try:
        watch.run = disk / "a.tmk"
        assert watch.report("exit_now", 1, 1000, alone=True).returncode == 7
        (trace,) = watch.traces()
        other, watch.run = watch.run, watch.folder / "b.tmk"
        assert watch.report("exit_now", 1, 1000, alone=True).returncode == 7
        if way == "foreign":
            os.chown(trace, 65534, 65534)
        elif way == "damaged":
            os.truncate(trace, 100)
        else:
            subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        grade, said = leftovers_told(watch, "--clean")
        reason = {"foreign": "its trace is another user's", "damaged": "too short|not a trace|header",
                  "readonly": "the file system is read-only"}[way]
        assert grade == "fair" and said.startswith("removed 1 ring of killed processes (0 without"), said
        assert re.search(rf"; 1 ring \([\d.]+ [KM]iB\) could not be merged: .*({reason})", said), said
        assert str(other) in said
        assert len(list(watch.rings.glob("*.ring"))) == 1
    finally:
        unmount(disk)


# ---- control sockets


@contextlib.contextmanager
def control_socket(watch, listens):
    """One as of a process with the number 1, and its path; connections are not accepted."""
    path = watch.rings / "tidemark.1.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        if listens:
            server.listen(0)
        yield path


def least_seconds(call, enough):
    """How long it takes at least, of five times at most: the machine may be busy."""
    seconds = []
    while len(seconds) < 5 and min(seconds, default=enough) >= enough:
        began = time.monotonic()
        call()
        seconds.append(time.monotonic() - began)
    return min(seconds)


def test_socket_of_a_stopped_process(watch):
    """Its queue is full, as that of a job under ^Z: neither run nor doctor waits for it."""
    with control_socket(watch, True) as path, contextlib.ExitStack() as waiting:
        for _ in range(2):
            client = waiting.enter_context(socket.socket(socket.AF_UNIX))
            client.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                client.connect(str(path))
        assert least_seconds(lambda: watch("true"), 3) < 3
        assert least_seconds(lambda: watch.tidemark("doctor", "--clean"), 8) < 8
        assert path.exists()


@pytest.mark.parametrize("way", ["run", "doctor"])
def test_socket_that_nobody_listens_at_yet(watch, way):
    """A process is between bind() and listen() for a moment; ten seconds later it is dead."""
    def clean():
        return watch("true").returncode if way == "run" else watch.tidemark("doctor", "--clean")

    own = Path(f"/dev/shm/tidemark-{os.geteuid()}")
    own.mkdir(mode=0o700, exist_ok=True)
    left = own / f"tidemark.{4194305 + os.getpid()}.sock"  # no process has that number
    with control_socket(watch, False) as path, socket.socket(socket.AF_UNIX) as other:
        other.bind(str(left))
        clean()
        assert path.exists() and left.exists()
    time.sleep(11)
    said = clean()
    assert not path.exists() and not left.exists()
    assert said == 0 or re.search(r", [1-9]\d* sockets?:", said)


@needs_root
def test_socket_where_rings_are_in_dev_shm(watch):
    """TIDEMARK_RING_DIR=/dev/shm: the folder of sockets is then the last one that is looked in."""
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("NOT RUN: this machine has no mount namespaces for us")
    bind = "import socket; socket.socket(socket.AF_UNIX).bind('tidemark.1.sock')"
    script = (f"mount -t tmpfs none /run; mkdir -p -m 700 /run/user/{os.geteuid()}; cd /run/user/{os.geteuid()}; "
              f'{sys.executable} -c "{bind}"; ls; sleep 11; {program("tidemark")} doctor --clean >&2; ls')
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], text=True, capture_output=True, check=False,
                          env=dict(watch.environment(preload=False), TIDEMARK_RING_DIR="/dev/shm"))
    assert done.stdout == "tidemark.1.sock\n", done.stderr


def test_living_ring_is_left_alone(watch):
    """doctor --clean and another run touch nothing of a process that lives."""
    args, env = watch.command(forks("wait", 3), alone=True)
    child = subprocess.Popen(args, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    before = sorted(watch.rings.iterdir())
    assert files_told(watch, "--clean") == 0
    assert sorted(watch.rings.iterdir()) == before and len(before) == 2
    child.communicate(b"\n")
    assert child.returncode == 0
    assert list(watch.rings.iterdir()) == []
    assert watch.tidemark("query", watch.run, "--format", "csv",
                          "SELECT allocations, state FROM processes").splitlines()[1] == "3,closed"


# ---- liveness


@needs_root
@pytest.mark.parametrize("closes", [0, 1])
def test_alive_in_another_pid_namespace(watch, closes):
    """The program closes every descriptor, in a PID namespace of its own: a reader outside neither
    merges nor removes its ring, and every event arrives."""
    if subprocess.run(["unshare", "-p", "-f", "true"], capture_output=True).returncode != 0:
        pytest.skip("NOT RUN: this machine has no PID namespaces for us")
    args, env = watch.command(["unshare", "-p", "-f", *forks("closer", closes)], alone=True)
    child = subprocess.Popen(args, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    for _ in range(3):
        watch.tidemark("query", watch.run, "SELECT count(*) FROM allocations")
        assert len(list(watch.rings.glob("*.ring"))) == 1
    child.communicate(b"\n")
    assert child.returncode == 0
    out = watch.tidemark("query", watch.run, "--format", "csv",
                         "SELECT allocations, dropped, state FROM processes")
    assert out.splitlines()[1] == "2000,0,closed"


@contextlib.contextmanager
def overlay_in(watch):
    """Run folder and TIDEMARK_RING_DIR on an overlay, as in a container."""
    parts = watch.folder / "parts"
    disk = watch.folder / "disk"
    mount_tmpfs(parts, "200m")
    try:
        for name in ("lower", "upper", "work"):
            (parts / name).mkdir()
        disk.mkdir()
        options = ",".join(f"{name}dir={parts / name}" for name in ("lower", "upper", "work"))
        done = subprocess.run(["mount", "-t", "overlay", "-o", options, "overlay", disk], capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"NOT RUN: this machine cannot mount an overlay: {done.stderr.strip()}")
        rings, watch.rings, watch.run = watch.rings, disk / "rings", disk / "a.tmk"
        watch.rings.mkdir(mode=0o700)
        try:
            yield disk
        finally:
            watch.rings = rings
            unmount(disk)
    finally:
        unmount(parts)


# /dev/shm as a process has it in a mount namespace of its own: too small for rings, or not to be written
SMALL_SHM = "mount -t tmpfs -o size=8m tmpfs /dev/shm"
NO_SHM = "mount -t tmpfs -o ro,size=8m tmpfs /dev/shm"


@needs_root
@ALONE
@pytest.mark.parametrize("unshare", ["-m", "-mpf"])
@pytest.mark.parametrize("shm", [SMALL_SHM, NO_SHM], ids=["small", "none"])
def test_alive_on_an_overlay(watch, alone, unshare, shm):
    """An overlay's mapping does not keep a lock. The ring of a living process is not merged there."""
    script = f"{shm} && exec \"$@\""
    with overlay_in(watch):
        args, env = watch.command(["unshare", unshare, "sh", "-c", script, "sh", *forks("closer", 1)], alone)
        with subprocess.Popen(args, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            assert child.stdout.readline() == b"ready\n"
            (ring,) = watch.run.glob("*.ring")
            for _ in range(4):
                said = watch.tidemark("query", watch.run, "--format", "csv", "SELECT allocations, state FROM processes")
                assert said.splitlines()[1] == "1000,open"
                watch.check_ok()
                time.sleep(0.5)  # `run` looks once a second
            assert list(watch.run.glob("*.ring")) == [ring]
            child.communicate(b"\n")
        assert child.returncode == 0
        said = watch.tidemark("query", watch.run, "--format", "csv", "SELECT allocations, dropped, state FROM processes")
        assert said.splitlines()[1:] == ["2000,0,closed"]
        assert not [file for file in watch.run.iterdir() if file.suffix in (".ring", ".account")]


@needs_root
def test_overlay_and_no_descriptors_of_our_own(watch):
    """The recorder's thread cannot leave the program's table: nothing may stay open in that, so the ring
    has no file."""
    with overlay_in(watch):
        launch = [program("sandboxed"), "launch"]
        front = [*launch, "errno:close_range", "--", *launch, "errno:unshare", "--"]
        script = f"{SMALL_SHM} && exec \"$@\""
        args, env = watch.command(["unshare", "-m", "sh", "-c", script, "sh", *front, *forks("closer", 1)], alone=True)
        env["TIDEMARK_SECCOMP"] = "trust"
        with subprocess.Popen(args, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            assert child.stdout.readline() == b"ready\n"
            assert list(watch.run.glob("*.ring")) == []
            opened = [os.readlink(link) for link in Path(f"/proc/{child.pid}/fd").iterdir()]
            assert not [path for path in opened if path.endswith((".ring", ".account"))]
            child.communicate(b"\n")
        assert child.returncode == 0
        said = watch.tidemark("query", watch.run, "--format", "csv", "SELECT allocations, dropped, state FROM processes")
        assert said.splitlines()[1:] == ["2000,0,closed"]


@needs_root
def test_dead_on_an_overlay(watch):
    """Killed, it is merged."""
    with overlay_in(watch):
        script = f"{SMALL_SHM} && exec \"$@\""
        done = watch("unshare", "-m", "sh", "-c", script, "sh", *forks("parent", 5), alone=True)
        assert done.returncode == 0, done.stderr
        assert totals(watch) == (6, 18, 0)
        assert list(watch.run.glob("*.ring")) == []


def test_child_does_not_keep_parents_ring(watch):
    """The parent is killed, its child lives on: the parent's ring is merged all the same."""
    args, env = watch.command(forks("orphan"), alone=True)
    child = subprocess.Popen(args, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    orphan = int(child.stdout.readline())
    child.kill()
    child.wait()
    try:
        out = watch.tidemark("query", watch.run, "--format", "csv",
                             "SELECT allocations, state FROM processes")
        assert out.splitlines()[1] == "3,closed"
        assert list(watch.rings.iterdir()) == []
    finally:
        os.kill(orphan, signal.SIGKILL)


def test_handler_that_forks_in_an_event(watch):
    """The child returns into the middle of its parent's event, and is recorded from its next one on."""
    done = watch(*forks("handler", 100))
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    sql = "SELECT count(*), min(allocations) FROM processes"
    assert watch.tidemark("query", watch.run, "--format", "csv", sql).splitlines()[1] == "101,3"


def test_parent_moves_rings_of_killed_children(watch):
    """No `run` is there: the parent's recorder gives the memory back, the trace keeps the events."""
    args, env = watch.command(forks("parent", 20), alone=True)
    done = subprocess.run(args, env=env, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1\n"  # its own ring is the only one left in memory
    assert len(list(watch.run.glob("*.ring"))) == 20
    assert totals(watch) == (21, 63, 0)
    assert list(watch.run.glob("*.ring*")) == []


# ---- files of other users


@contextlib.contextmanager
def opened_in(folder):
    """The names in the folder that anybody opens meanwhile: filled in at the end."""
    libc, names, opened = ctypes.CDLL(None, use_errno=True), set(), 0x20  # IN_OPEN
    fd = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    assert fd >= 0 and libc.inotify_add_watch(fd, os.fsencode(folder), opened) >= 0
    yield names
    with contextlib.suppress(BlockingIOError):
        while True:
            events, at = os.read(fd, 1 << 16), 0
            while at < len(events):
                _, mask, _, size = struct.unpack_from("iIII", events, at)
                assert mask & 0x4000 == 0  # the queue had room
                names.add(events[at + 16 : at + 16 + size].rstrip(b"\0").decode())
                at += 16 + size
    os.close(fd)


@needs_root
@pytest.mark.parametrize("way", ["begin", "rescue", "run", "doctor"])
def test_files_of_other_users_are_not_opened(watch, way):
    """However many there are in a folder for all: one that is named as another user's, or is owned
    by one, costs a look at its name or its owner."""
    uid, other = os.geteuid(), 54321
    foreign = {f"tidemark.{name}": owner for name, owner in [
        ("x.1.ring", uid), (f"{other}.1.20260101T000000.000.ring", other), (f"{uid}.1.20260101T000000.000.ring", other),
        (f"{other}.0123456789abcdef.account", other), (f"{uid}.0123456789abcdef.account", other),
        (f"{uid}1.1.20260101T000000.000.ring", other)]}
    for name, owner in foreign.items():
        (watch.rings / name).write_bytes(b"TMKRING" + bytes(8192))
        os.chmod(watch.rings / name, 0o666)
        os.chown(watch.rings / name, owner, owner)
    with opened_in(watch.rings) as names:
        if way == "begin":
            assert watch(*forks("few", 3), alone=True).returncode == 0
        elif way == "rescue":
            assert watch(*forks("parent", 2), alone=True).returncode == 0
        elif way == "run":
            assert watch(*forks("few", 3)).returncode == 0
        else:
            watch.tidemark("doctor")
            watch.tidemark("doctor", "--clean")
    assert way == "doctor" or any(name.endswith(".ring") for name in names)
    assert names & set(foreign) == set()
    assert {path.name for path in watch.rings.iterdir()} >= set(foreign)


@pytest.fixture(autouse=True)
def no_core_files():
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
