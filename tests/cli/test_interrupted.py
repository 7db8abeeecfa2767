# SPDX-License-Identifier: MIT
"""^C, SIGTERM and a closed terminal while a file is written: nothing is left of it, and a file of
before is as it was. What is written has a name only where it must (SQLite, folders of imports).
"""
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import time

import pytest
from test_golden import BUILD, ROOT, SMALL, environment, shell

TIDEMARK = os.path.join(BUILD, "tidemark")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LONG_S = 30


@pytest.fixture(scope="module", name="run")
def make_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("interrupted")
    assert shell("tidemark run -q -o a.tmk -- tinytrain --steps 60 --quiet", folder).returncode == 0
    return folder / "a.tmk"


@pytest.fixture(scope="module", name="long_run")
def make_long_run(tmp_path_factory):
    """One that takes a while to export as a time line, too."""
    folder = tmp_path_factory.mktemp("interrupted")
    assert shell(f"tidemark run -q -o a.tmk -- tinytrain --steps 4000 {SMALL}", folder).returncode == 0
    return folder / "a.tmk"


def has_open_file_in(pid, folder):
    """Whether the process writes to a file of the folder, be it one without a name, that is not yet the
    one that it is for."""
    for link in pathlib.Path(f"/proc/{pid}/fd").glob("*"):
        try:
            path = os.readlink(link)
            if path.startswith(str(folder) + "/") and path != str(folder / "out"):
                return True
        except OSError:
            continue
    return False


def wait_until(done, process):
    end = time.monotonic() + LONG_S
    while not done():
        assert process.poll() is None, "it has ended too soon"
        assert time.monotonic() < end
        time.sleep(0.001)


def stand_still(pid):
    """Stop it, and wait until it is: it may run on another core."""
    os.kill(pid, signal.SIGSTOP)
    while pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "TZ":
        pass


def interrupt(args, folder, number, begun, path=None):
    """Start it, and send the signal once `begun` says so, which may have stopped it; returns its status."""
    env = environment()
    if path:
        env["PATH"] = f"{path}:{env['PATH']}"
    with subprocess.Popen([TIDEMARK, *args], cwd=folder, env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: begun(process.pid), process)
        process.send_signal(number)
        process.send_signal(signal.SIGCONT)
        return process.wait(LONG_S)


def has_begun_in(folder):
    """Whether it has a file open there; then it is stopped."""
    def begun(pid):
        stand_still(pid)
        is_open = has_open_file_in(pid, folder)
        if not is_open:
            os.kill(pid, signal.SIGCONT)
        return is_open
    return begun


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize("to", [["sqlite"], ["csv", "--table", "timeline(1000000)"], ["perfetto"]],
                         ids=lambda to: to[0])
def test_export(run, long_run, tmp_path, to, number):
    """It is stopped again and again until the file is there, and has the signal before it goes on."""
    target = tmp_path / "out"
    target.write_text("of before")

    args = ["export", str(long_run if to == ["perfetto"] else run), "--to", *to, "-o", str(target)]
    assert interrupt(args, tmp_path, number, has_begun_in(tmp_path)) == -number
    assert os.listdir(tmp_path) == ["out"] and target.read_text() == "of before"


def test_export_to_a_pipe(run, tmp_path):
    """SQLite's file then lies in the folder for temporary files."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with subprocess.Popen([TIDEMARK, "export", run, "--to", "sqlite", "-o", "-"], stdout=subprocess.PIPE,
                          env=environment() | {"TMPDIR": str(scratch)}) as process:
        wait_until(lambda: os.listdir(scratch), process)
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.wait(LONG_S) == -signal.SIGINT
    assert os.listdir(scratch) == []


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize("suffix", ["png", "pdf"])
def test_plot(run, tmp_path, number, suffix):
    target = tmp_path / f"p.{suffix}"
    target.write_text("of before")
    assert interrupt(["plot", str(run), "-o", str(target)], tmp_path, number, has_begun_in(tmp_path)) == -number
    assert os.listdir(tmp_path) == [target.name]
    assert target.read_text() == "of before"


def test_import(tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    shutil.copy(sorted(pathlib.Path(ROOT, "tests/data").rglob("*.pickle*"), key=os.path.getsize)[-1], source / "s.pickle")
    folder = tmp_path / "out"
    folder.mkdir()
    # The folder is there for a few milliseconds: not each attempt meets them.
    for _ in range(40):
        with subprocess.Popen([TIDEMARK, "import", str(source / "s.pickle"), "-o", "a.tmk"], cwd=folder,
                              env=environment(), stderr=subprocess.DEVNULL) as process:
            while not os.listdir(folder) and process.poll() is None:
                pass
            process.send_signal(signal.SIGTERM)
            status = process.wait(LONG_S)
        if status == -signal.SIGTERM and not (folder / "a.tmk").exists():
            assert os.listdir(folder) == []
            return
        shutil.rmtree(folder / "a.tmk", ignore_errors=True)
    pytest.fail("never met while it was writing")


def test_ignored_signals_stay_so(run, tmp_path):
    """As nohup has it."""
    target = tmp_path / "out"
    process = subprocess.Popen([TIDEMARK, "export", run, "--to", "sqlite", "-o", target], env=environment(),
                               stderr=subprocess.DEVNULL,
                               preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    wait_until(lambda: os.listdir(tmp_path), process)
    process.send_signal(signal.SIGHUP)
    assert process.wait(LONG_S) == 0
    assert os.listdir(tmp_path) == ["out"]


def limited(args, folder, n_bytes):
    """With files of at most so many bytes."""
    return subprocess.run([TIDEMARK, *args], cwd=folder, env=environment(), capture_output=True, check=False,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes)))


@pytest.mark.parametrize("form", ["text", "md", "json", "csv"])
def test_a_report_is_whole_or_none(run, tmp_path, form):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("of before")
    target.chmod(0o640)
    link.symlink_to("target")
    args = ["report", str(run), "--format", form, "-o", str(link)]
    assert limited(args, tmp_path, 100).returncode in (1, -signal.SIGXFSZ)  # ignored: it is an error
    assert target.read_text() == "of before" and sorted(os.listdir(tmp_path)) == ["link", "target"]
    assert subprocess.run([TIDEMARK, *args], env=environment(), check=False).returncode == 0
    assert len(target.read_text()) > 1000 and target.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink() and sorted(os.listdir(tmp_path)) == ["link", "target"]


def test_a_report_where_it_cannot_be(run, tmp_path):
    done = subprocess.run([TIDEMARK, "report", run, "-o", tmp_path / "no" / "such"], env=environment(),
                          capture_output=True, check=False, text=True)
    assert done.returncode == 1 and "cannot write" in done.stderr
    done = subprocess.run([TIDEMARK, "report", run, "-o", "/dev/stdout"], env=environment(),
                          capture_output=True, check=False, text=True)
    assert done.returncode == 0 and "PEAK" in done.stdout
