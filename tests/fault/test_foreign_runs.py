# SPDX-License-Identifier: MIT
"""Runs that somebody else made: reading them changes nothing, whatever they name.

The attacker is uid 65534, the reader uid 65533; both are this test's, which needs root for that.
"""
import contextlib
import ctypes
import fcntl
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import time
import zlib
from pathlib import Path

import pytest
from fault_kit import fresh_rings, program

ATTACKER, READER = 65534, 65533
N, N_ALLOCATIONS = 3000, 750
INFO = 320  # where a trace's info begins

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: needs root to be two users")


class Place:
    """A folder that both users reach, with a run of the attacker's whose process was killed."""

    def __init__(self, folder):
        self.folder = folder
        self.run = folder / "evil.tmk"
        self.rings = folder / "rings"
        self.rings.mkdir()
        self.rings.chmod(0o1777)
        folder.chmod(0o1777)
        env = dict(os.environ, LD_PRELOAD=program("libtidemark.so"), TIDEMARK_RUN=str(self.run),
                   TIDEMARK_RING_DIR=str(self.rings))
        env.pop("XDG_RUNTIME_DIR", None)
        done = subprocess.run([program("journal"), "exit_now", str(folder / "journal"), "1", str(N)],
                              env=env, user=ATTACKER, group=ATTACKER, capture_output=True)
        assert done.returncode == 7, done.stderr
        (self.trace,) = self.run.glob("*.trace")
        (self.ring,) = self.rings.glob("*.ring")
        for path in (self.run, self.trace, self.ring):
            path.chmod(0o755 if path.is_dir() else 0o644)

    def name(self, key, path):
        """Have the trace name another file as its `key`, with right checksums."""
        data = self.trace.read_bytes()
        header_bytes, info_bytes = (struct.unpack_from("<I", data, at)[0] for at in (12, 32))
        lines = data[INFO : INFO + info_bytes].split(b"\n")
        info = b"\n".join(key + os.fsencode(path) if line.startswith(key) else line for line in lines)
        head = bytearray(data[:INFO])
        size = (INFO + len(info) + 7) // 8 * 8
        struct.pack_into("<I", head, 12, size)
        struct.pack_into("<I", head, 32, len(info))
        struct.pack_into("<I", head, 36, zlib.crc32(bytes(head[:36]) + info))
        for at in (64, 192):  # both statuses say where chunks begin
            for field in (64, 72):
                (old,) = struct.unpack_from("<Q", head, at + field)
                if old:
                    struct.pack_into("<Q", head, at + field, old - header_bytes + size)
            struct.pack_into("<I", head, at + 124, zlib.crc32(bytes(head[at : at + 124])))
        body = bytes(head) + info
        self.trace.write_bytes(body + bytes(size - len(body)) + data[header_bytes:])

    def start_reading(self, user=READER, **more):
        """A tidemark of the user's that counts the run's allocations."""
        env = {"PATH": "/usr/bin:/bin", "HOME": "/", "TIDEMARK_RING_DIR": str(self.rings)}
        sql = "SELECT count(*) FROM allocations"
        return subprocess.Popen([program("tidemark"), "query", str(self.run), sql, "--format", "csv"], env=env,
                                user=user, group=user, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)

    def read(self, user=READER):
        """What the user's tidemark says of the run: the number of allocations."""
        return count_of(self.start_reading(user))

    def read_within(self, limit_s, user=READER):
        """The same, said within so many seconds; of five times once, because the machine may be busy."""
        seconds = []
        while len(seconds) < 5 and min(seconds, default=limit_s) >= limit_s:
            start = time.monotonic()
            found = self.read(user)
            seconds.append(time.monotonic() - start)
        assert min(seconds) < limit_s, seconds
        return found


def count_of(reader):
    """What it says in the end."""
    out, said = reader.communicate(timeout=60)
    assert reader.returncode == 0, said
    return int(out.split()[-1])


@pytest.fixture
def place():
    folder = fresh_rings()
    yield Place(folder)
    shutil.rmtree(folder)


def snapshot(folder):
    """Every file below, with what is in it."""
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("user", [READER, 0])
def test_foreign_run_is_read_not_merged(place, user):
    """The ring's events are there, and neither file has changed; for root, too."""
    before = snapshot(place.folder)
    found = place.read(user)
    assert found == N_ALLOCATIONS  # all of them in the ring
    assert snapshot(place.folder) == before
    assert place.read(ATTACKER) == found
    assert not place.ring.exists()


def test_ring_elsewhere_is_not_touched(place):
    """A trace that names a file of the reader's as its ring."""
    home = place.folder / "home"
    home.mkdir()
    for name in ("authorized_keys", "tidemark.65533.1.ring"):
        (home / name).write_text("precious\n")
        os.chown(home / name, READER, READER)
    os.chown(home, READER, READER)
    home.chmod(0o700)
    before = snapshot(home)
    for name in ("authorized_keys", "tidemark.65533.1.ring"):
        place.name(b"ring=", home / name)
        place.read()
        assert snapshot(home) == before


IN_OPEN, IN_CLOSE = 0x20, 0x18  # of a file that was open for writing, or only to be read


@contextlib.contextmanager
def noticed(path, mask):
    """A function that waits until somebody does that to the file."""
    libc = ctypes.CDLL(None)
    fd = libc.inotify_init1(os.O_CLOEXEC)
    assert libc.inotify_add_watch(fd, os.fsencode(path), mask) >= 0
    yield lambda limit_s: select.select([fd], [], [], limit_s)[0] == [fd]
    os.close(fd)


@pytest.mark.parametrize("mask,delay", [(IN_OPEN, 0), (IN_OPEN, 0.005), (IN_OPEN, 0.02), (IN_CLOSE, 0)],
                         ids=["opened", "early", "late", "closed"])
def test_folder_is_swapped_while_reading(place, mask, delay):
    """The folder of the ring becomes a link to the reader's own, in which a file of that name is. The
    reader stands still meanwhile."""
    home, evil = place.folder / "home", place.folder / "d"
    home.mkdir()
    evil.mkdir()
    ring = evil / "tidemark.65533.1.ring"
    shutil.move(place.ring, ring)
    ring.chmod(0o666)  # the reader may lock it
    (home / ring.name).write_text("precious\n")
    for path in (home, home / ring.name):
        os.chown(path, READER, READER)
    n_pages = 4096  # the most that is believed: slow to copy
    with open(ring, "r+b") as file:
        file.truncate(4096 + n_pages * 16384)
        file.seek(16)
        file.write(struct.pack("<II", n_pages, 99999999))
    place.name(b"ring=", ring)
    place.rings = evil  # where readers look for rings
    (place.folder / "link").symlink_to(home)

    with noticed(ring, mask) as wait, place.start_reading(preexec_fn=lambda: os.nice(19)) as reader:
        assert wait(60)
        time.sleep(delay)
        reader.send_signal(signal.SIGSTOP)
        is_reading = reader.poll() is None
        evil.rename(place.folder / "d_old")
        (place.folder / "link").rename(evil)
        reader.send_signal(signal.SIGCONT)
        assert count_of(reader) == N_ALLOCATIONS
    assert is_reading or delay > 0 or mask == IN_CLOSE
    place.read()
    assert (home / ring.name).read_text() == "precious\n"


@pytest.mark.parametrize("name", ["x.trace", "refused"])
def test_what_is_no_file_is_not_opened(place, name):
    """A link in a run leads to something that does more than be read when it is opened: a FIFO here,
    which could be a tape or a watchdog."""
    fifo = place.folder / "fifo"
    os.mkfifo(fifo)
    fifo.chmod(0o666)
    (place.run / name).symlink_to(fifo)
    with noticed(fifo, IN_OPEN) as wait:
        assert place.read() == N_ALLOCATIONS
        assert place.read(0) == N_ALLOCATIONS
        assert not wait(0)


@contextlib.contextmanager
def opened_often(path):
    """A function that waits until the file has been opened so often."""
    libc, opened = ctypes.CDLL(None), [0]
    fd = libc.inotify_init1(os.O_CLOEXEC)
    assert libc.inotify_add_watch(fd, os.fsencode(path), IN_OPEN | IN_CLOSE) >= 0  # equal events become one

    def wait(n):
        while opened[0] < n:
            events = os.read(fd, 4096)
            opened[0] += sum(struct.unpack_from("iI", events, at)[1] & IN_OPEN != 0 for at in range(0, len(events), 16))

    yield wait
    os.close(fd)


def opens_to_write(pid, name):
    """Whether the process has a file of that name open to write to it."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if Path(os.readlink(link)).name == name:
                flags = re.search(r"flags:\s*(\d+)", (link.parent.parent / "fdinfo" / link.name).read_text())
                if int(flags[1], 8) & os.O_ACCMODE != os.O_RDONLY:
                    return True
    return False


def test_run_is_swapped_while_it_is_merged(place):
    """Whoever is asked to read a run by a path of somebody else's, and has a dead run and another file of
    that name: the path leads to the one, then to the other."""
    home, other, link = place.folder / "home", place.folder / "other", place.folder / "link"
    for _ in range(20):  # the reader may be too fast
        env = dict(os.environ, LD_PRELOAD=program("libtidemark.so"), TIDEMARK_RUN=str(home),
                   TIDEMARK_RING_DIR=str(place.rings))
        subprocess.run([program("journal"), "exit_now", str(place.folder / "own"), "1", "20000"], env=env,
                       user=READER, group=READER, capture_output=True, check=False)
        (trace,) = home.glob("*.trace")
        other.mkdir()
        (other / trace.name).write_text("precious\n" * 100)
        for path in (other, other / trace.name):
            os.chown(path, READER, READER)
        link.symlink_to(home)
        place.run = link
        with opened_often(trace) as wait, place.start_reading(preexec_fn=lambda: os.nice(19)) as reader:
            wait(2)  # what it says of its ring has been read; now its ring is merged
            reader.send_signal(signal.SIGSTOP)
            is_early = reader.poll() is None and not opens_to_write(reader.pid, trace.name)
            is_early = is_early and list(place.rings.glob(f"tidemark.{READER}.*.ring")) != []
            link.unlink()
            link.symlink_to(other)
            reader.send_signal(signal.SIGCONT)
            reader.communicate()
        assert (other / trace.name).read_bytes() == b"precious\n" * 100
        if is_early:
            return
        for path in (home, other, link):
            link.unlink() if path == link else shutil.rmtree(path)
    pytest.fail("it was never early enough")


def test_locked_ring_does_not_hold_a_reader(place):
    """Locked by its owner, for nothing: others read at once, and the owner within two seconds."""
    with open(place.ring, "r+b") as ring:
        lock = struct.pack("hhqqi", fcntl.F_WRLCK, 0, 1, 1, 0)
        fcntl.fcntl(ring, 37, lock)  # F_OFD_SETLK
        assert place.read_within(2) == N_ALLOCATIONS
        assert place.read_within(3, ATTACKER) == N_ALLOCATIONS
        assert place.ring.exists()
    assert place.read(ATTACKER) == N_ALLOCATIONS
    assert not place.ring.exists()


def test_rings_that_seem_busy_do_not_hold_a_reader(place):
    """Twenty traces with rings that look as if their packer were at work, for ever."""
    data, ring = place.trace.read_bytes(), bytearray(place.ring.read_bytes())
    struct.pack_into("<Q", ring, 272, 1)  # the epoch is odd
    held = []
    for i in range(20):
        path = place.rings / f"tidemark.{ATTACKER}.{i}.ring"
        path.write_bytes(ring)
        place.name(b"ring=", path)
        (place.run / f"{i}.trace").write_bytes(place.trace.read_bytes())
        place.trace.write_bytes(data)
        held.append(open(path, "r+b"))
        fcntl.fcntl(held[-1], 37, struct.pack("hhqqi", fcntl.F_RDLCK, 0, 0, 1, 0))  # F_OFD_SETLK: alive
    os.chown(place.run, ATTACKER, ATTACKER)
    for path in (*place.run.iterdir(), *place.rings.iterdir()):
        os.chown(path, ATTACKER, ATTACKER)
        path.chmod(0o644)
    assert place.read_within(3) == N_ALLOCATIONS
    for file in held:
        file.close()


def test_control_socket_elsewhere_is_not_removed(place):
    """Nor is a socket that the trace names, in a folder that is not its user's alone."""
    (pid,) = re.findall(rb"\npid=(\d+)\n", place.trace.read_bytes()[:4096])
    path = place.folder / f"tidemark.{int(pid)}.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
    os.chown(path, ATTACKER, ATTACKER)
    place.name(b"control=", path)
    assert place.read(ATTACKER) == N_ALLOCATIONS
    assert not place.ring.exists() and path.exists()
