# SPDX-License-Identifier: MIT
"""What the recorder has of the driver is what the programs say that they allocated, line by line,
in whichever way they reach the driver. The programs are those of tests/fake_cuda/programs."""
import json
import os
import shutil
import signal
import subprocess
import time
from collections import Counter

import pytest
from driver_kit import CONTEXT_BYTES, GIB, MIB, PYTHON, SCRIPTS, listed, program

WAYS = ["cuda_linked", "cuda_linked_now", "cuda_pointers", "cuda_loaded dlsym", "cuda_loaded proc",
        "cuda_loaded thread", "cuda_loaded old_proc"]


BY_WHOM = ["driver", "allocator", "driver"]  # a pool is an allocator


class Seen:
    """A program that was watched: what it said, and what was recorded."""

    def __init__(self, watch, lines, talk):
        self.watch = watch
        self.lines = lines
        self.talk = talk

    def query(self, sql):
        """Rows, as tuples."""
        answer = json.loads(self.watch.tidemark("query", "--json", self.watch.run, sql))
        return [tuple(row.values()) for row in answer["rows"]]

    def said(self, *families, without=()):
        """(pid, device, family, address, size, is freed), in the recording's words."""
        return [(line["pid"], None if line["device"] is None else f"cuda:{line['device']}",
                 line["family"], line["address"], line["size"], int(line["freed"]))
                for line in self.lines
                if (line["family"] in families if families else line["family"] not in without)]

    def segments(self):
        return self.query("SELECT pid, device, kind, address, size, free_ns IS NOT NULL "
                          "FROM segments ORDER BY id")

    def blocks(self):
        """What came from pools."""
        return self.query("SELECT pid, device, 'async', address, size, free_ns IS NOT NULL "
                          "FROM allocations ORDER BY id")


def run_watched(watch, cards, *command, **more):
    done = watch(*command, env=cards.environment(**more))
    assert done.returncode == 0, done.stderr
    return Seen(watch, listed(done.stdout), done.stderr)


def assert_same(seen, in_order=True, talk=""):
    """The recording has each line of the list, and nothing else."""
    said, recorded = seen.said(without=["async"]), seen.segments()
    assert seen.talk == talk
    assert Counter(recorded) == Counter(said)
    if in_order:
        assert recorded == said
    assert Counter(seen.blocks()) == Counter(seen.said("async"))
    assert seen.watch.check_ok()


# ---- all ways, all scenes

@pytest.mark.parametrize("way", WAYS)
def test_way(watch, cards, way):
    """Every family, in every way to the driver."""
    name, *way = way.split()
    seen = run_watched(watch, cards, cards.program(name), *way, "families")
    assert len(seen.lines) == 22
    assert_same(seen)


@pytest.mark.parametrize("scene", ["full", "vmm", "pools", "contexts"])
def test_scene(watch, cards, scene):
    seen = run_watched(watch, cards, cards.program("cuda_loaded"), "proc", scene)
    assert_same(seen)


@pytest.mark.parametrize("way", ["cuda_linked", "cuda_loaded proc"])
def test_eight_cards_and_threads(watch, cards, way):
    cards.make(*[4 * GIB] * 8)
    name, *way = way.split()
    seen = run_watched(watch, cards, cards.program(name), *way, "threads")
    assert {line["device"] for line in seen.lines} == set(range(8))
    assert_same(seen, in_order=False)
    assert len(seen.query("SELECT DISTINCT thread FROM segments WHERE kind = 'device'")) == 16


def test_addresses_that_go_from_thread_to_thread(watch, cards):
    """An address is somebody's only when it is nobody else's any more."""
    seen = run_watched(watch, cards, cards.program("cuda_loaded"), "proc", "race")
    assert_same(seen, in_order=False)
    last_end = {}
    for address, begin, end in seen.query(
            "SELECT address, alloc_ns, free_ns FROM segments ORDER BY id"):
        assert last_end.get(address, 0) <= begin
        last_end[address] = float("inf") if end is None else end


def test_stream_of_another_device(watch, cards):
    cards.make(4 * GIB, 4 * GIB)
    assert_same(run_watched(watch, cards, cards.program("cuda_loaded"), "proc", "streams"))


def test_memory_of_another_process(watch, cards):
    seen = run_watched(watch, cards, cards.program("cuda_loaded"), "proc", "ipc")
    assert len({line["pid"] for line in seen.lines}) == 2
    assert_same(seen, in_order=False)


# ---- ends

LIMIT_S = 60


def wait_for_looks(watch, n):
    """Wait until the recorder has looked at the card so often, of which the last is one that began
    after this."""
    def n_looks():
        return int(watch.tidemark("query", watch.run, "--format", "csv", "SELECT count(*) FROM samples").split()[-1])

    wanted, end = n_looks() + n, time.monotonic() + LIMIT_S
    while n_looks() < wanted:
        assert time.monotonic() < end, "the recorder does not look"
        time.sleep(0.05)


def hold_and_kill(watch, cards, n_looks):
    command, env = watch.command([cards.program("cuda_loaded"), "proc", "hold"])
    with subprocess.Popen(command, env={**env, **cards.environment()}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        lines = listed("".join(run.stdout.readline() for _ in range(22)))
        if n_looks > 0:
            wait_for_looks(watch, n_looks)
        os.kill(lines[0]["pid"], signal.SIGKILL)
        _, talk = run.communicate(timeout=60)
    assert run.returncode == 128 + signal.SIGKILL
    return Seen(watch, lines, talk)


def test_killed(watch, cards):
    """What a process held when it was killed."""
    assert_same(hold_and_kill(watch, cards, 0))


def test_accounts(watch, cards):
    """The card's memory, taken apart."""
    cards.make(4 * GIB, more=f"reserved {100 * MIB}\nprocess 1 {200 * MIB}\n")
    seen = hold_and_kill(watch, cards, 2)
    assert_same(seen)
    held = sum(line["size"] for line in seen.lines if not line["freed"] and
               line["family"] in ("device", "array", "physical", "pool"))
    # Of the small ones two share 2 MiB, the array has 2 MiB, the rest is as asked for. The program's
    # own pool keeps 64 MiB no more: it was synchronised.
    own = CONTEXT_BYTES + (2 + 100 + 2 + 32 + 4) * MIB
    assert seen.query("SELECT used, total, own, others FROM samples ORDER BY time_ns DESC "
                      "LIMIT 1") == [(own + 200 * MIB, 4 * GIB - 100 * MIB, own, 200 * MIB)]
    assert seen.query("SELECT part, owner, bytes FROM accounting WHERE moment = 'last' "
                      "AND inside = 'used'") == [
        ("segments", "user", held), ("context", None, own - held), ("others", None, 200 * MIB),
        ("unexplained", None, 0)]


def test_fork(watch, cards):
    seen = run_watched(watch, cards, cards.program("cuda_loaded"), "proc", "fork")
    assert len({line["pid"] for line in seen.lines}) == 2
    assert_same(seen, in_order=False)


# ---- a full card

def test_what_the_driver_refuses(watch, cards):
    """7 of 512 MiB fit beside the context; then the rest, 212 MiB."""
    seen = run_watched(watch, cards, cards.program("cuda_loaded"), "proc", "full")
    assert [line["size"] >> 20 for line in seen.lines] == [512] * (7 + 3) + [212]
    assert seen.query("SELECT device, requested >> 20, source FROM ooms ORDER BY time_ns") == [
        ("cuda:0", size, source) for size, source in [
            (512, "driver"), *[(512, who) for who in BY_WHOM] * 2, *[(2, who) for who in BY_WHOM]]]


# ---- Python

def test_ctypes(watch, cards):
    assert_same(run_watched(watch, cards, PYTHON, SCRIPTS / "cuda_ctypes.py"))


def test_runtime_library_of_an_extension(watch, cards):
    cards.make(4 * GIB, 4 * GIB)
    extension = cards.program("libfakeextension.so")
    seen = run_watched(watch, cards, PYTHON, SCRIPTS / "cuda_extension.py", extension)
    assert_same(seen)
    # Who asked for it is who called the runtime library.
    assert seen.query("SELECT DISTINCT owner, library FROM segments") == [
        ("user", "libfakeextension.so")]


def test_freed_when_the_driver_is_gone(watch, cards):
    """It is refused then, and nothing is recorded of it."""
    seen = run_watched(watch, cards, PYTHON, SCRIPTS / "cuda_extension.py",
                       cards.program("libfakeextension.so"), "extension_run_to_the_end")
    assert [line["freed"] for line in seen.lines] == [False]
    assert_same(seen)


@pytest.mark.parametrize("name, owner", [
    ("libnccl.so.2", "nccl"), ("libcublas.so.12", "cublas"), ("libcudnn_graph.so.9", "cudnn"),
    ("libc10_cuda.so", "torch"), ("jaxlib/cuda/plugin.so", "jax"), ("libmine.so", "user")])
def test_owner(watch, cards, tmp_path, name, owner):
    """By the library's file."""
    cards.make(4 * GIB, 4 * GIB)
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(cards.program("libfakeextension.so"), path)
    shutil.copy(cards.program("libcudart.so"), path.parent)
    seen = run_watched(watch, cards, PYTHON, SCRIPTS / "cuda_extension.py", path)
    assert_same(seen)
    assert seen.query("SELECT DISTINCT owner, library FROM segments") == [(owner, path.name)]


# ---- beside other preloads

@pytest.mark.parametrize("wrapper", ["wrap_loader", "wrap_loader_calls", "wrap_malloc"])
def test_beside_another_preload(watch, cards, wrapper):
    """`tidemark run` puts the recorder first."""
    library = program(f"tests/driver/lib{wrapper}.so")
    assert_same(run_watched(watch, cards, cards.program("cuda_loaded"), "proc", "vmm",
                            LD_PRELOAD=library))


@pytest.mark.parametrize("way", ["cuda_linked", "cuda_pointers", "cuda_loaded dlsym",
                                 "cuda_loaded proc"])
def test_before_one_that_stands_in_front_of_the_driver(watch, cards, way):
    """It is called as often as without us, and what it gives is recorded."""
    library = program("tests/driver/libwrap_cuda.so")
    name, *way = way.split()
    seen = run_watched(watch, cards, cards.program(name), *way, "families", LD_PRELOAD=library)
    assert_same(seen, talk="wrap_cuda: 7, 5\n")


def test_behind_one_that_stands_in_front_of_the_driver(watch, cards):
    library = program("tests/driver/libwrap_cuda.so")
    env = watch.environment(preload=True)
    done = watch(cards.program("cuda_linked"), "families", alone=True, env=cards.environment(
        LD_PRELOAD=f"{library}:{env['LD_PRELOAD']}"))
    assert (done.returncode, done.stderr) == (0, "wrap_cuda: 7, 5\n")
    assert len(listed(done.stdout)) == 22
