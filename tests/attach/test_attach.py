# SPDX-License-Identifier: MIT
"""attach: the library gets in and is called, and the program does not notice."""
import errno
import re
import subprocess
import sys
import time

import pytest

from attach_kit import program, settled, workshop_fixture  # noqa: F401 (a fixture)

PYTHON = "/usr/bin/python3"


def is_called(calls, pid, number=1):
    """The library was called so: on a thread of its own, with signals blocked but for faults."""
    return calls[0] == f"call {number} pid {pid} main 0 blocked 23 size 1024 memory 1"


def test_tight_loop(shop):
    """A program that never makes a system call; afterwards it has the library and nothing else."""
    target = shop.target("loop")
    said, calls, _ = shop.attach(target.pid, "--max-size", "64MiB", "--cpu-tensors", "--native")
    assert is_called(calls, target.pid)
    assert calls[1:] == [f"run={shop.folder}/run1.tmk", "injected=1", "max_size=67108864", "cpu_tensors=1",
                         "native=1"]
    assert "the library was loaded from its file" in said
    assert settled(lambda: len(target.threads()), 1) == 1, "the helper thread has not ended"
    before = target.mappings()
    said, calls, _ = shop.attach(target.pid)
    assert is_called(calls, target.pid, 2) and calls[1:] == [f"run={shop.folder}/run2.tmk", "injected=1"]
    assert "the library was there already" in said
    assert settled(lambda: len(target.threads()), 1) == 1
    assert [m.split()[0] for m in target.mappings()] == [m.split()[0] for m in before]
    assert target.end() == "rounds 1 wrong 0 errno 77 mask 1 trap 1"


def test_says_what_next(shop):
    target = shop.target("idle")
    said, _, _ = shop.attach(target.pid)
    lines = said.splitlines()
    assert re.fullmatch(rf"tidemark: process {target.pid} \(attach_target\) is watched now, after "
                        r"[\d.]+ .?s; one of its threads was stopped for [\d.]+ .?s", lines[0])
    assert "no torch in it, nor Python" in said
    assert lines[-2:] == ["tidemark: the run is run1.tmk; next: tidemark report run1.tmk",
                          f"tidemark: until it ends, or: tidemark detach {target.pid}"]
    assert target.end() == "ended"


def test_vector_registers(shop):
    target = shop.target("vector")
    for _ in range(20):
        shop.attach(target.pid)
    assert target.end() == "wrong 0"


SLOW_TRIES = 5


def attach_in_second_half(shop, target, wait_ms):
    """Attach three times to a target that waits; False if it was no longer there."""
    time.sleep(wait_ms / 2000)
    for _ in range(3):
        try:
            shop.attach(target.pid)
        except AssertionError:
            if target.process.poll() is None:
                raise
            return False
    return True


def attached_in_wait(shop, wait):
    """A target that was attached to in the second half of its wait, and how long that is. On a busy
    machine attaching takes longer, and waits end late, as that of a target which nobody touches
    shows: then others wait twice as long."""
    for i in range(SLOW_TRIES):
        wait_ms = 1600 << i
        target, control = shop.target("wait", wait, wait_ms), shop.target("wait", wait, wait_ms)
        is_attached = attach_in_second_half(shop, target, wait_ms)
        if is_attached and int(control.wait().split()[5]) < 1.25 * wait_ms:
            return target, wait_ms
    return pytest.fail("this machine is too busy for waits")


@pytest.mark.parametrize("wait, result, error", [
    ("sleep", 0, 0), ("poll", 0, 0), ("select", 0, 0), ("epoll", 0, 0),
    ("sigtimedwait", -1, errno.EAGAIN), ("condition", errno.ETIMEDOUT, 0), ("child", 7, 0)])
def test_waits_go_on(shop, wait, result, error):
    """Nobody sees EINTR, and time that was waited counts, except where the kernel has no memory of
    it (epoll, sigtimedwait: from the beginning, as after SIGSTOP they would not go on at all)."""
    target, wait_ms = attached_in_wait(shop, wait)
    said = target.wait().split()
    assert said[:5] == ["result", str(result), "errno", str(error), "after"]
    assert int(said[5]) >= wait_ms - 10
    if wait not in ("epoll", "sigtimedwait"):
        assert int(said[5]) < 1.5 * wait_ms, "it has begun again"


def test_read_goes_on(shop):
    target = shop.target("wait", "read", "0")
    for _ in range(5):
        shop.attach(target.pid)
    assert target.wait("hello").startswith("result 5 errno 0 after ")


def test_thread_storm(shop):
    """64 threads and the first, all in malloc, free, dlopen and dlclose: fifty times, no deadlock."""
    target = shop.target("threads", "64")
    for i in range(50):
        _, calls, _ = shop.attach(target.pid)
        assert is_called(calls, target.pid, i + 1)
    assert settled(lambda: len(target.threads()), 65) == 65
    assert target.end() == "loops 1 errors 0"


def stops_of(said):
    """How many threads were stopped."""
    return int(re.search(r"; (\d+) threads? (?:was|were) stopped", said)[1])


def test_always_in_malloc(shop):
    """A single thread that does nothing but allocate: often stopped at a wrong moment, and let go."""
    target = shop.target("malloc")
    n_stops = 0
    for i in range(40):
        said, calls, _ = shop.attach(target.pid)
        assert is_called(calls, target.pid, i + 1)
        n_stops += stops_of(said)
    assert n_stops > 40, "no moment was ever wrong: nothing was looked at"
    assert target.end() == "loops 1 errors 0"


def test_inside_an_allocator(shop):
    """The only thread sleeps within malloc(), with its lock: it is left alone until it is out."""
    n_stops = []
    while len(n_stops) < SLOW_TRIES and min(n_stops, default=9) > 2:
        target = shop.start(program("attach_allocator"), "inside", "1200")
        start = time.monotonic()
        time.sleep(0.3)  # it is on its way there
        said, calls, _ = shop.attach(target.pid)
        assert is_called(calls, target.pid)
        assert time.monotonic() - start > 0.8
        assert target.end() == "error 0"
        n_stops.append(stops_of(said))
    assert min(n_stops) <= 2, n_stops  # once it may be met on its way out, on a busy machine more often


def test_beside_an_allocator(shop):
    """The lock is held by code that looks harmless: what was begun is taken back, and tried again
    until it works. The sleep in which the thread was disturbed is not cut short."""
    n_stops = []
    while len(n_stops) < SLOW_TRIES and max(n_stops, default=0) <= 1:  # it may be out before we are there
        target = shop.start(program("attach_allocator"), "beside", str(1200 << len(n_stops)))
        start = time.monotonic()
        time.sleep(0.3)  # it is on its way there
        said, calls, _ = shop.attach(target.pid)
        assert is_called(calls, target.pid)
        assert time.monotonic() - start > 0.8
        assert target.end() == "error 0"
        n_stops.append(stops_of(said))
    assert max(n_stops) > 1


def test_signals_are_kept(shop):
    """3,000 queued signals and more, 1,000 a second, and a timer: all come, in order."""
    target = shop.target("signals", "3000")
    for _ in range(15):
        shop.attach(target.pid)
    assert target.end() == "signals 1 lost 0 disorder 0 ticks 1 errors 0"


def test_one_thread_is_stopped(shop):
    """Of 64 that wait, one, and never another; how long is measured, not tested."""
    code = ("import threading as t\ne = t.Event()\n"
            "for _ in range(63):\n    t.Thread(target=e.wait).start()\n"
            "print('ready', flush=True)\ninput()\ne.set()\nprint(t.active_count() >= 1)")
    target = shop.start(PYTHON, "-c", code)
    for _ in range(5):
        assert stops_of(shop.attach(target.pid)[0]) == 1
    assert target.wait("\n") == "True"


def test_python_importing(shop):
    """Into a Python that is busy loading libraries: torch if there is one."""
    code = ("print('ready', flush=True)\ntry:\n    import torch as t\nexcept ImportError:\n"
            "    import decimal as t\nimport json, ssl, sqlite3\n"
            "print(sum(range(2000000)), t.__name__ in ('torch', 'decimal'))")
    target = shop.start(PYTHON, "-c", code)
    for i in range(10):
        said, calls, _ = shop.attach(target.pid)
        assert is_called(calls, target.pid, i + 1)
        assert "nor Python" not in said
    assert target.wait() == "1999999000000 True"


def test_python_idle(shop):
    code = "import sys\nprint('ready', flush=True)\nprint(sys.stdin.read())"
    target = shop.start(PYTHON, "-c", code)
    said, calls, _ = shop.attach(target.pid)
    assert is_called(calls, target.pid)
    assert "note: there is no torch in it yet" in said
    assert target.wait("text") == "text"


def test_library_refuses(shop):
    """Its reason is passed on, and the next attempt may be better."""
    target = shop.target("idle")
    done = shop.tidemark("attach", target.pid, "-o", "refuse.tmk")
    assert (done.returncode, done.stderr) == (
        1, f"tidemark: process {target.pid} is not watched: no recorder today; try tomorrow\n")
    _, calls, _ = shop.attach(target.pid)
    assert is_called(calls, target.pid, 2)
    assert target.end() == "ended"


def test_library_cannot_be_loaded(shop):
    target = shop.target("idle")
    shop.library.write_bytes(b"not a library at all, and long enough to have been one" * 4)
    assert shop.refused(target.pid) == (
        f"tidemark: process {target.pid} could not load the library: "
        f"{shop.library}: invalid ELF header")
    assert settled(lambda: len(target.threads()), 1) == 1
    assert target.end() == "ended"


def test_timeout(shop):
    """A recorder that takes longer than it is given: said, and nobody is hurt."""
    for i in range(SLOW_TRIES):  # on a busy machine half a second may be too short to load it
        target = shop.target("loop")
        done = shop.tidemark("attach", target.pid, "-o", f"slow{i}.tmk", "--timeout", str(0.5 * 2 ** i))
        assert done.returncode == 1
        if "is loaded into process" in done.stderr:
            break
    assert "is loaded into process" in done.stderr and "has not started yet" in done.stderr
    (shop.folder / f"slow{i}.tmk.go").touch()
    assert settled(lambda: len(target.threads()), 1) == 1
    assert target.end() == "rounds 1 wrong 0 errno 77 mask 1 trap 1"


def test_already_watched(shop):
    """A process under `tidemark run`."""
    watched = subprocess.Popen(
        [program("tidemark"), "run", "-q", "-o", "first.tmk", "--", program("tinytrain"), "--steps",
         "1000000", "--quiet"], cwd=shop.folder)
    try:
        with open(f"/proc/{watched.pid}/task/{watched.pid}/children", encoding="utf-8") as children:
            assert settled(lambda: children.seek(0) or len(children.read().split()), 1) == 1
            children.seek(0)
            pid = int(children.read())
        assert settled(lambda: any((shop.folder / "first.tmk").glob("*.trace")), True)
        done = shop.tidemark("attach", pid)
        assert (done.returncode, done.stderr) == (
            0, f"tidemark: process {pid} is watched already, its run is {shop.folder}/first.tmk\n"
               f"tidemark: next: tidemark report {shop.folder}/first.tmk\n")
        assert shop.tidemark("attach", pid, "-o", "second.tmk").returncode == 1
    finally:
        watched.terminate()
        watched.wait()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
