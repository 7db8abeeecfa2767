# SPDX-License-Identifier: MIT
"""Full disks and limits: the program ends as it would have, the trace is readable and says why it
ends early. Never SIGBUS, never SIGXFSZ."""
import os
import resource
import subprocess

import pytest
from fault_kit import has_tidemark, program, unmount

STEADY = ("steady", 2, 60_000, 2000)
LONG = ("steady", 2, 400_000, 1500)  # some 5 MB of trace

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="NOT RUN: mounting a small tmpfs needs root"
)


def mount_tmpfs(folder, size):
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        pytest.skip(f"NOT RUN: this machine cannot mount a tmpfs: {done.stderr.strip()}")


def status_of(trace):
    """(state, reason, errno) of the newer status, read from the bytes."""
    data = trace.read_bytes()[:4096]
    slots = [data[64:192], data[192:320]]
    newer = max(slots, key=lambda slot: int.from_bytes(slot[:8], "little"))
    return tuple(int.from_bytes(newer[i : i + 4], "little") for i in (8, 12, 16))


def check_stopped(watch, reason, words):
    """One trace, stopped for `reason`; what it has is a beginning of what was reported."""
    (trace,) = watch.traces()
    assert status_of(trace)[:2] == (2, reason)
    text = subprocess.run([program("trace_dump"), trace], capture_output=True, check=True).stdout
    assert text.count(b" alloc ") > 0 or trace.stat().st_size < 70_000
    if has_tidemark():
        for verb, said in (("check", words), ("report", words)):
            done = subprocess.run(
                [program("tidemark"), verb, str(watch.run)], capture_output=True, text=True
            )
            assert said in done.stdout + done.stderr, (verb, done.stdout, done.stderr)
            assert done.returncode == 0
    return text


@needs_root
@pytest.mark.parametrize("size", ["1m", "2m"])
def test_disk_full(watch, size):
    disk = watch.folder / "disk"
    mount_tmpfs(disk, size)
    try:
        watch.run = disk / "a.tmk"
        done = watch.report(*LONG)
        assert (done.returncode, done.stdout) == (0, "done\n")
        check_stopped(watch, 12, "the run's share of the disk")
        assert list(watch.rings.iterdir()) == []
    finally:
        unmount(disk)


@needs_root
def test_disk_full_from_the_start(watch):
    """Not even a header fits."""
    disk = watch.folder / "disk"
    mount_tmpfs(disk, "64k")
    try:
        (disk / "filler").write_bytes(b"x" * 65536)
    except OSError:
        pass
    try:
        watch.run = disk / "a.tmk"
        done = watch.report(*STEADY)
        assert (done.returncode, done.stdout) == (0, "done\n")
        assert watch.traces() == []
        assert list(watch.rings.iterdir()) == []
    finally:
        unmount(disk)


@needs_root
def test_disk_full_while_merging(watch):
    """The ring is kept until there is room, and then everything is there once."""
    disk = watch.folder / "disk"
    mount_tmpfs(disk, "8m")
    try:
        watch.run = disk / "a.tmk"
        assert watch.report("exit_now", 1, 20_000, alone=True).returncode == 7
        (trace,) = watch.traces()
        with open(disk / "filler", "wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(b"x" * 4096)
            except OSError:
                pass
        subprocess.run([program("trace_dump"), trace], capture_output=True, check=True)
        assert len(list(watch.rings.glob("*.ring"))) == 1
        (disk / "filler").unlink()
        assert watch.check("--exact")["events"] == 20_000
    finally:
        unmount(disk)


def limit_file_size(size):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.parametrize("alone", [True, False], ids=["preload", "run"])
@pytest.mark.parametrize("size", [256, 1024, 4096, 5000, 65536, 300_000])
def test_file_size_limit(watch, size, alone):
    """The ring then has no file, either."""
    watch.journal.write_bytes(bytes(8 * 4096))  # it is larger than the limit
    done = watch.report(*STEADY, alone=alone, preexec_fn=limit_file_size(size))
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert list(watch.rings.iterdir()) == []
    if size < 320:  # not even a header
        assert watch.traces() == []
        return
    (trace,) = watch.traces()
    assert trace.stat().st_size <= size
    check_stopped(watch, 2, "file-size limit")


@needs_root
def test_ring_folder_too_small(watch):
    """TIDEMARK_RING_DIR has a megabyte: the ring goes elsewhere, nothing is lost."""
    small = watch.folder / "small"
    mount_tmpfs(small, "1m")
    try:
        done = watch.report(*STEADY, env={"TIDEMARK_RING_DIR": str(small)})
        assert (done.returncode, done.stdout) == (0, "done\n")
        assert list(small.iterdir()) == []
        assert watch.check("--exact")["events"] == 120_000
    finally:
        unmount(small)


def unshared(script, *args):
    """A shell script where mounts are its own; skip where that is not allowed."""
    done = subprocess.run(["unshare", "--mount", "true"], capture_output=True)
    if done.returncode != 0:
        pytest.skip("NOT RUN: this machine has no mount namespaces for us")
    return ["unshare", "--mount", "sh", "-ec", script, "sh", *map(str, args)]


def in_small_shm(watch, size, *journal):
    """The journal program where /dev/shm has that size, and no other folder for rings is named."""
    script = f'mount -t tmpfs -o size={size} tmpfs /dev/shm; exec "$@"'
    args, env = watch.command(unshared(script, program("journal"), *journal), alone=True)
    env["TIDEMARK_RING_DIR"] = ""
    return subprocess.run(args, env=env, capture_output=True, text=True)


@needs_root
@pytest.mark.parametrize("size", ["64k", "1m"])
def test_tiny_dev_shm(watch, size):
    """The ring then lies beside the trace, and is found there after a sudden end."""
    done = in_small_shm(watch, size, "exit_now", watch.journal, 1, 30_000, 1000)
    assert done.returncode == 7, done.stderr
    assert len(list(watch.run.glob("*.ring"))) == 1
    assert watch.check("--exact")["events"] == 30_000
    assert list(watch.run.glob("*.ring")) == []


@needs_root
def test_burst_into_a_ring_on_the_disk(watch):
    """Events that come as fast as a thread can report them, more than the ring has at first: the
    thread waits for the packer, which alone may touch the disk, and no event is lost."""
    done = in_small_shm(watch, "64k", "steady", watch.journal, 1, 300_000, 0)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert watch.check("--exact")["events"] == 300_000


@needs_root
@pytest.mark.parametrize("size", ["16m", "64m"])
def test_small_dev_shm(watch, size):
    """Containers have 64 MiB of it: the ring takes a part, and nothing is lost."""
    done = in_small_shm(watch, size, "steady", watch.journal, 1, 100_000, 1500)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    figures = watch.check("--exact")
    assert figures == {**figures, "events": 100_000, "merged": 0}


@needs_root
def test_no_room_anywhere(watch):
    """/dev/shm and the run's disk both too small for a ring: still no harm to the program."""
    disk = watch.folder / "disk"
    mount_tmpfs(disk, "2m")
    try:
        watch.run = disk / "a.tmk"
        done = in_small_shm(watch, "64k", "steady", watch.journal, 1, 30_000, 1000)
        assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
        assert list(disk.rglob("*.ring")) == []
        for trace in watch.traces():
            subprocess.run([program("trace_dump"), trace], capture_output=True, check=True)
    finally:
        unmount(disk)


def test_folder_not_writable(watch):
    """Where the traces should go there is a file."""
    watch.run.write_text("in the way")
    done = watch.report(*STEADY, alone=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert watch.run.read_text() == "in the way"


@pytest.fixture(autouse=True)
def no_core_files():
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
