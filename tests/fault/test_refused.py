# SPDX-License-Identifier: MIT
"""A recorder that cannot begin says why: "reported no allocation" is for programs that reported
none."""
import os
import re
import subprocess

import pytest
from fault_kit import program, unmount
from test_limits import mount_tmpfs, needs_root


def run_limited(watch, limits, **more):
    """What `run` says of a program under these limits, whose output is as ever."""
    done = subprocess.run(
        [program("tidemark"), "run", "-o", watch.run, "--", "bash", "-c", f"{limits} exec \"$0\" late tsync none",
         program("sandboxed")], env=watch.environment(preload=False), capture_output=True, text=True, timeout=60,
        check=False, **more)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert list(watch.rings.iterdir()) == []
    return done.stderr.splitlines()


def test_little_address_space(watch):
    """What the recorder reserves is the program's own: it is left alone."""
    said = run_limited(watch, "ulimit -v 600000;")
    assert len(said) == 1 and said[0].startswith("tidemark: nothing was recorded: process ")
    assert said[0].endswith(": it may have less than 1 GiB of address space (ulimit -v)")


@pytest.mark.parametrize("text,is_linked", [
    ("my own notes\n", False), ("12 3 0 as ours\nmy own notes\n", False), ("12 3 0 as ours\n\n", False),
    ("12 3 0 as ours\n", True)], ids=["notes", "mixed", "blank", "link"])
def test_file_of_the_users_own(watch, text, is_linked):
    """It has the name of the file for reasons: it stays as it is, and the reason is said all the same."""
    own = watch.folder / "a.tmk.refused"
    own.write_text(text)
    if is_linked:
        os.link(own, watch.folder / "other")
    said = run_limited(watch, "ulimit -v 600000;")
    assert said == ["tidemark: nothing was recorded: 1 process: it may have less than 1 GiB of address space (ulimit -v)"]
    assert own.read_text() == text
    assert watch(program("forks"), "few", "3").returncode == 0
    assert own.read_text() == text
    assert "not recorded" not in watch.check_ok()


def test_reasons_before_and_after_the_folder(watch):
    """The first lies beside the folder, which was not there yet. In the end all lie in it, and move with it."""
    limited = f"(ulimit -v 600000; {program('forks')} few 3)"
    assert watch("sh", "-c", f"{limited}; {program('forks')} few 3; {limited}").returncode == 0
    assert sorted(path.name for path in watch.folder.iterdir()) == ["a.tmk"]
    watch.run = watch.run.rename(watch.folder / "b.tmk")
    assert len((watch.run / "refused").read_text().splitlines()) == 2
    assert "and 1 other: it may have less than 1 GiB of address space" in " ".join(watch.check_ok().split())


def test_no_thread(watch):
    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody whose processes are counted")
    for folder in (watch.folder, *watch.folder.parents[:2]):
        os.chmod(folder, 0o777)
    os.chmod(watch.rings, 0o777)
    said = run_limited(watch, "ulimit -u 0;", user=54321, group=54321)
    assert len(said) == 1 and said[0].endswith(
        ": no thread could be started for the recorder (Resource temporarily unavailable)"), said


def test_few_descriptors(watch):
    """One beside the standard three is enough."""
    done = watch("sh", "-c", 'ulimit -n 4; exec "$0" few 3', program("forks"))
    assert (done.returncode, len(watch.traces())) == (0, 1), done.stderr
    assert "3 allocations" in watch.check_ok()


def test_nothing_can_be_written(watch):
    """Not even the reason: it is counted, where `run` finds it."""
    said = run_limited(watch, "ulimit -f 0;")
    assert said == ["tidemark: nothing was recorded: 1 process: the trace could not be made"]
    done = subprocess.run([program("tidemark"), "peak", watch.run], capture_output=True, text=True, check=False)
    assert done.returncode == 3 and done.stderr.splitlines()[-1] == said[0]


def test_no_descriptor(watch):
    """The program has all that it may: the recorder's thread has a table of its own."""
    done = watch("sh", "-c", 'ulimit -n 50; exec "$0" hoard 3', program("forks"))
    assert (done.returncode, len(watch.traces())) == (0, 1), done.stderr
    assert "3 allocations" in watch.check_ok()


@needs_root
@pytest.mark.parametrize("way,reason", [
    ("user", "the trace could not be made"), ("size", "the trace could not be made"),
    ("threads", "no thread could be started for the recorder")])
def test_children_that_cannot_say_why(watch, way, reason):
    """They cannot write to the run: their parent says it."""
    done = subprocess.run([program("tidemark"), "run", "-o", watch.run, "--", program("forks"), "refused", "3", way],
                          env=watch.environment(preload=False), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"missing 3 processes: {reason}" in " ".join(done.stderr.split())
    assert "nothing was lost" not in done.stderr
    assert f"note: not recorded: 3 processes: {reason}" in watch.check_ok()


@needs_root
def test_full_disk(watch):
    """No room for a line, either: `run` knows how many there were."""
    disk = watch.folder / "disk"
    mount_tmpfs(disk, "400k")
    try:
        watch.run = disk / "a.tmk"
        script = f"{program('forks')} few 3; dd if=/dev/zero of={disk}/full bs=4k 2>/dev/null; {program('forks')} few 3"
        done = subprocess.run([program("tidemark"), "run", "-o", watch.run, "--", "sh", "-c", script],
                              env=watch.environment(preload=False), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "missing 1 process: the run's share of the disk" in " ".join(done.stderr.split())
    finally:
        unmount(disk)


@pytest.mark.parametrize("what", ["rm -rf", "mv -T"], ids=["removed", "moved"])
def test_run_folder_goes_away(watch, what):
    script = f"{program('forks')} few 3; {what} {watch.run} {watch.folder}/gone"
    done = subprocess.run([program("tidemark"), "run", "-o", watch.run, "--", "sh", "-c", script],
                          env=watch.environment(preload=False), capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr == (f"tidemark: nothing is left of the recording: {watch.run} was removed or moved away while "
                           "the program ran\n")


@needs_root
@pytest.mark.skipif(subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0,
                    reason="NOT RUN: this machine has no mount namespaces for us")
def test_without_proc(watch):
    """Whether a filter is there cannot be told without /proc: nothing is recorded, and `run` says why."""
    script = 'mount -t tmpfs none /proc && exec "$@"'
    args = [program("tidemark"), "run", "-o", watch.run, "--", program("forks"), "few", "3"]
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", *args], env=watch.environment(preload=False),
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    (said,) = done.stderr.splitlines()
    assert said.startswith("tidemark: nothing was recorded: "), said
    assert "reported no allocation" not in said and "seccomp" in said, said


def test_trace_is_removed(watch):
    """The folder is removed while a process records, and made again by the next one: the first one's
    trace is gone, which is said."""
    fifo = watch.folder / "fifo"
    os.mkfifo(fifo)
    script = (f"{program('forks')} wait 3 <>{fifo} | (read ready; rm -r {watch.run}; {program('forks')} few 3; "
              f"echo >{fifo}; cat)")
    done = subprocess.run([program("tidemark"), "run", "-o", watch.run, "--", "sh", "-c", script],
                          env=watch.environment(preload=False), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stderr.split())
    assert re.search(r"missing process \d+: its trace was removed while it was recorded", said), said
    assert "nothing was lost" not in said
    assert re.search(r"note: not recorded: process \d+: its trace was removed", watch.check_ok())
