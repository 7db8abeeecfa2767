# SPDX-License-Identifier: MIT
"""Threads, forks, execs, signals and ways to end: every event is there, once, in order."""
import platform
import signal
import subprocess

import pytest
from fault_kit import program

ALONE = pytest.mark.parametrize("alone", [True, False], ids=["preload", "run"])


def plain(watch, mode, *numbers):
    """What the program says when nobody watches."""
    done = subprocess.run(
        [program("journal"), mode, watch.folder / "unwatched", *map(str, numbers)],
        capture_output=True,
        text=True,
        env=watch.environment(preload=False),
    )
    return done.returncode, done.stdout, done.stderr


def same_as_plain(watch, done, mode, *numbers):
    assert (done.returncode, done.stdout, done.stderr) == plain(watch, mode, *numbers)


@ALONE
def test_sixteen_writers(watch, alone):
    done = watch.without_drops(lambda pace_ns: watch.report("steady", 16, 20_000, pace_ns, alone=alone),
                               20_000, 50_000, 120_000)
    same_as_plain(watch, done, "steady", 16, 100)
    figures = watch.check("--exact")
    assert figures == {**figures, "events": 320_000, "dropped": 0, "traces": 1}


def test_thread_storm(watch):
    done = watch.report("storm", 2000, 10, 0)
    assert done.stdout == "done\n"
    figures = watch.check("--exact")
    assert figures == {**figures, "events": 20_000, "dropped": 0, "traces": 1}


def test_more_threads_than_pages(watch):
    """1,024 pages: the threads beyond have none, and each of their events is counted."""
    assert watch.report("crowd", 1100, 20).stdout == "done\n"
    figures = watch.check("--plain")
    assert figures == {**figures, "events": 1024 * 20, "dropped": 76 * 20, "reported": 22_000}


def test_full_ring_counts_drops(watch):
    """Faster than any packer: present + dropped = reported, to the last event."""
    assert watch.report("burst", 2, 2_000_000).stdout == "done\n"
    figures = watch.check("--plain")
    assert figures["events"] + figures["dropped"] == 4_000_000
    assert figures["dropped"] > 0 and figures["events"] > 400_000


@pytest.mark.parametrize("mode", ["sigalrm", "sigprof"])
def test_signal_handler_reports(watch, mode):
    """A handler that interrupts the recorder loses its event, and that is counted."""
    assert watch.report(mode, 1, 300).stdout == "done\n"
    figures = watch.check("--plain")
    assert figures["events"] + figures["dropped"] == figures["reported"]
    assert figures["lane1"] > 0


@pytest.mark.skipif(platform.machine() != "x86_64", reason="steps by the trap flag of x86-64")
@pytest.mark.parametrize("mode,flags", [("alt_above", 1), ("alt_above", 2), ("alt_below", 1), ("alt_within", 1)])
def test_handler_on_another_stack(watch, mode, flags):
    """A handler that runs after each instruction of an event, wherever its stack lies (2: one that
    is disarmed meanwhile): each event is there or counted."""
    assert watch.report(mode, flags, 20).stdout == "done\n"
    figures = watch.check("--plain")
    assert figures["lane0"] == 21 and figures["reported"] > 1000, figures
    assert figures["events"] + figures["dropped"] == figures["reported"], figures


def test_fork(watch):
    """Child and grandchild have traces of their own, the parent's goes on."""
    assert watch.report("fork", 1, 3000).stdout == "done\n"
    figures = watch.check("--exact")
    assert figures == {**figures, "events": 15_000, "traces": 3, "merged": 0, "dropped": 0}


def test_fork_without_events(watch):
    assert watch.report("fork_quiet", 1, 3000).stdout == "done\n"
    figures = watch.check("--exact")
    assert figures == {**figures, "events": 6000, "traces": 1, "merged": 0}


def test_fork_before_the_first_event(watch):
    assert watch.report("fork_first", 1, 3000).stdout == "done\n"
    figures = watch.check("--exact")
    assert figures == {**figures, "events": 6000, "traces": 2, "merged": 0}


def test_vfork_and_exec(watch):
    assert watch.report("vfork", 1, 500).stdout == "done\n"
    figures = watch.check("--exact")
    assert figures == {**figures, "events": 21 * 500, "traces": 1, "merged": 0}


@ALONE
def test_exec(watch, alone):
    """The old image's ring is merged, the new image records for itself."""
    assert watch.report("exec", 1, 3000, alone=alone).stdout == "done\n"
    figures = watch.check("--exact")
    assert figures == {**figures, "events": 6000, "lane0": 3000, "traces": 2, "merged": 1}


@ALONE
@pytest.mark.parametrize(
    "mode,status",
    [("exit_now", 7), ("quick_exit", 7), ("abort", -signal.SIGABRT)],
)
def test_ends_without_warning(watch, mode, status, alone):
    done = watch.report(mode, 1, 3000, alone=alone)
    if status < 0:
        assert done.returncode in (status, 128 - status)
    else:
        assert done.returncode == status
    figures = watch.check("--exact")
    assert figures == {**figures, "events": 3000, "traces": 1, "merged": 1}


@ALONE
def test_worker_exit(watch, alone):
    """_exit(), by which forked workers end: the trace is closed and no ring is left for others."""
    done = watch.report("worker_exit", 1, 3000, alone=alone)
    assert done.returncode == 7
    assert list(watch.rings.iterdir()) == []
    figures = watch.check("--exact")
    assert figures == {**figures, "events": 3000, "traces": 1, "merged": 0}


def test_main_thread_ends_first(watch):
    """Our thread must not keep a process alive whose own threads are all gone."""
    done = watch.report("thread_exit", 1, 3000, timeout=20)
    same_as_plain(watch, done, "thread_exit", 1, 10)
    figures = watch.check("--exact")
    assert figures == {**figures, "events": 6000, "traces": 1, "merged": 0}


def test_closes_all_descriptors(watch):
    """The program's files stay its own, and the recording goes on."""
    done = watch.report("close_all", 1, 2000)
    for old in watch.folder.glob("journal.*"):
        number = old.suffix[1:]
        assert old.read_text() == f"file {number}\n"
        old.unlink()
    same_as_plain(watch, done, "close_all", 1, 10)
    figures = watch.check("--exact")
    assert figures == {**figures, "events": 201 * 2000, "traces": 1, "merged": 0}


def test_descriptor_numbers(watch):
    done = watch.report("descriptors", 1, 2000)
    same_as_plain(watch, done, "descriptors", 1, 10)
    assert "descriptors 0 3" in done.stdout
    watch.check("--exact")


def test_environment_off(watch):
    """Loaded, but nobody asked for a recording."""
    env = watch.environment(preload=True)
    del env["TIDEMARK_RUN"]
    done = subprocess.run(
        [program("journal"), "steady", watch.journal, "2", "1000"],
        env=env,
        capture_output=True,
        text=True,
    )
    same_as_plain(watch, done, "steady", 2, 1000)
    assert not watch.run.exists() and list(watch.rings.iterdir()) == []
