# SPDX-License-Identifier: MIT
"""What readers make of runs that are odd as files: traces with holes, more traces than descriptors.
"""
import errno
import json
import os
import resource
import shutil
import subprocess

import pytest
from test_golden import shell

GIB = 1 << 30
MOST_SECONDS = 3 # of CPU time, for a command; reading the 24 GiB of a hole takes more
NO_HOLES = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

off_t lseek(int fd, off_t offset, int whence)
{
    if (whence != SEEK_DATA && whence != SEEK_HOLE)
        return syscall(SYS_lseek, fd, offset, whence);
    errno = EINVAL;
    return -1;
}

off_t lseek64(int fd, off_t offset, int whence) __attribute__((alias("lseek")));
"""


@pytest.fixture(scope="module", name="recorded")
def recorded_fixture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    done = shell("tidemark run -q -o a.tmk -- tinytrain --steps 300 --layers 1 --dim 8 --heads 1 "
                 "--seq 8 --batch 1 --quiet", folder)
    assert done.returncode == 0, done.stderr
    return folder / "a.tmk"


def copy_of(recorded, folder):
    """A copy of the run, and the path of its only trace."""
    run = folder / "a.tmk"
    shutil.copytree(recorded, run)
    (name,) = os.listdir(run)
    return run / name


def need_holes(path):
    """Skips where the file system has no holes, or does not tell them."""
    file = os.open(path, os.O_RDONLY)
    try:
        end = os.fstat(file).st_size
        if os.fstat(file).st_blocks * 512 > end / 2:
            pytest.skip("no sparse files on this file system")
        try:
            os.lseek(file, end - 1, os.SEEK_DATA)
        except OSError as problem:
            if problem.errno == errno.ENXIO:
                return
        pytest.skip("this file system does not tell holes (SEEK_DATA)")
    finally:
        os.close(file)


def cpu_seconds():
    """CPU time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def check(folder, prefix=""):
    """The check of a run, as JSON, and the CPU seconds that it took."""
    begin = cpu_seconds()
    done = shell(f"{prefix} tidemark check a.tmk --json", folder)
    seconds = cpu_seconds() - begin
    if prefix and "runtime does not come first" in done.stderr:
        pytest.skip("a sanitizer wants to be preloaded first")
    assert done.returncode in (0, 1, 3), done.stderr
    (trace,) = json.loads(done.stdout)["traces"]
    return trace, seconds


def lost(offset, size):
    """The finding of one stretch that belongs to no chunk."""
    return {"offset": offset,
            "text": f"{size} bytes in 1 places belong to no chunk (damaged or cut off)"}


def events(folder):
    query = "SELECT count(*), max(time_ns) FROM events"
    done = shell(f"tidemark query a.tmk '{query}' --format csv", folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_hole_at_the_end(recorded, tmp_path):
    path = copy_of(recorded, tmp_path)
    whole, _ = check(tmp_path)
    counted, size = events(tmp_path), path.stat().st_size
    os.truncate(path, 30 * GIB)
    need_holes(path)
    trace, seconds = check(tmp_path)
    assert seconds < MOST_SECONDS
    assert whole["ok"]
    assert trace["findings"] == [lost(size, 30 * GIB - size)]
    assert trace["events"] == whole["events"]
    begin = cpu_seconds()
    assert events(tmp_path) == counted
    assert shell("tidemark report a.tmk", tmp_path).returncode == 0
    assert cpu_seconds() - begin < 2 * MOST_SECONDS


def test_holes_between_chunks(recorded, tmp_path):
    """The second half of the file lies behind a hole, and each half has a few more bytes."""
    path = copy_of(recorded, tmp_path)
    counted = events(tmp_path)
    raw = path.read_bytes()
    first = raw.index(b"TMKC")
    second = raw.index(b"TMKC", len(raw) // 2)
    assert first < second
    with open(path, "wb") as file:
        file.write(raw[:second])
        for i in range(1, 6):
            file.seek(i * 4 * GIB)
            file.write(b"not a chunk")
        file.seek(24 * GIB + 8)
        file.write(raw[second:])
    if path.stat().st_blocks * 512 > GIB:
        pytest.skip("no sparse files on this file system")
    trace, seconds = check(tmp_path)
    assert seconds < MOST_SECONDS
    assert trace["findings"] == [lost(second, 24 * GIB + 8 - second)]
    assert events(tmp_path) == counted


def test_file_system_that_does_not_tell_holes(recorded, tmp_path):
    """Everything is read instead, and nothing is missed."""
    (tmp_path / "no_holes.c").write_text(NO_HOLES)
    built = subprocess.run(["cc", "-shared", "-fPIC", "-o", "no_holes.so", "no_holes.c"],
                           cwd=tmp_path, check=False, capture_output=True)
    if built.returncode != 0:
        pytest.skip("no C compiler")
    path = copy_of(recorded, tmp_path)
    raw = path.read_bytes()
    second = raw.index(b"TMKC", len(raw) // 2)
    with open(path, "wb") as file:
        file.write(raw[:second])
        file.seek(second + (64 << 20))
        file.write(raw[second:])
    prefix = "LD_PRELOAD=$PWD/no_holes.so"
    without, _ = check(tmp_path, prefix)
    told, _ = check(tmp_path)
    assert without == told
    assert told["findings"] == [lost(second, 64 << 20)]


# ---- more traces than descriptors

N_TRACES = 1500


@pytest.fixture(scope="module", name="crowd")
def crowd_fixture(tmp_path_factory):
    """A folder with a run of many traces: one, under many names."""
    folder = tmp_path_factory.mktemp("crowd")
    done = shell("tidemark run -q -o one.tmk -- tinytrain --steps 3 --layers 1 --dim 8 --heads 1 "
                 "--seq 8 --batch 1 --quiet", folder)
    assert done.returncode == 0, done.stderr
    (name,) = os.listdir(folder / "one.tmk")
    os.mkdir(folder / "a.tmk")
    for i in range(N_TRACES):
        os.link(folder / "one.tmk" / name, folder / "a.tmk" / f"{i}.{name}")
    return folder


def ask_crowd(command, folder, files=1024, statuses=(0,)):
    """Standard output of a command that may have so many files open."""
    done = shell(f"ulimit -n {files}; {command}", folder)
    assert done.returncode in statuses, done.stderr
    assert "Too many open files" not in done.stderr
    assert "cannot be read" not in done.stderr
    return done.stdout


@pytest.mark.parametrize("files", [1024, 40])
def test_every_trace_is_read(crowd, files):
    found = json.loads(ask_crowd("tidemark check a.tmk --json", crowd, files))
    assert found["unreadable"] == 0
    assert len(found["traces"]) == N_TRACES
    assert all(trace["ok"] for trace in found["traces"])
    query = "tidemark query %s.tmk 'SELECT count(*), sum(size) FROM allocations' --format csv"
    one, all_of_them = [
        [int(cell) for cell in ask_crowd(query % run, crowd, files).splitlines()[1].split(",")]
        for run in ("one", "a")
    ]
    assert all_of_them == [N_TRACES * value for value in one]


def test_every_command_reads_them(crowd):
    report = json.loads(ask_crowd("tidemark report a.tmk --json", crowd))
    assert len(report["processes"]) == N_TRACES
    assert ask_crowd("tidemark peak a.tmk --by stack", crowd).startswith("54.4 KiB allocated on cpu")
    verdict = "not enough steps to tell: 2 have ended; it takes 10\n"
    assert ask_crowd("tidemark leak a.tmk", crowd, statuses=(1,)) == verdict
    assert ask_crowd("tidemark diff a.tmk one.tmk", crowd)
    ask_crowd("tidemark export a.tmk --to csv --table processes -o out.csv", crowd)
    with open(crowd / "out.csv", encoding="utf-8") as file:
        assert len(file.readlines()) == N_TRACES + 1
    ask_crowd("tidemark export a.tmk --to folded -o out.folded", crowd)
