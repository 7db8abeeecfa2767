# SPDX-License-Identifier: MIT
"""`-o` and what has that name already: ended runs make way, everything else is left as it is."""
import contextlib
import fcntl
import glob
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import time

import pytest
from test_cli_run import PATIENCE_S, TIDEMARK, child_of, wait_until
from test_golden import BUILD, SMALL, environment, shell

QUICK = f"tinytrain --steps 1 {SMALL}"
LONG = f"tinytrain --steps 1000000 {SMALL}"
REFUSED = "name another folder"


def run(output, folder, program=QUICK):
    return shell(f"tidemark run -q -o {output} -- {program}", folder)


def picture(folder):
    """Everything below, as it is: names, kinds, contents."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(place, name)
            info = os.lstat(path)
            content = None
            if stat.S_ISREG(info.st_mode):
                with open(path, "rb") as file:
                    content = file.read()
            found[path] = (stat.S_IFMT(info.st_mode), info.st_uid, info.st_ino, content)
    return found


def assert_refused(output, folder, reason):
    """Nothing is touched, the program is not started, and the message says why and what to do."""
    before = picture(folder)
    done = run(output, folder, "touch STARTED")
    assert (done.returncode, done.stdout) == (1, "")
    assert reason in done.stderr and REFUSED in done.stderr, done.stderr
    assert picture(folder) == before


@contextlib.contextmanager
def background(line, folder, **more):
    with subprocess.Popen(["bash", "-c", f"exec {line}"], cwd=folder, env=environment(),
                          stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          start_new_session=True, **more) as job:
        try:
            yield job
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)
            wait_until("the end of all", lambda: not is_alive(job.pid))


def is_alive(group):
    """Whether a process of this group has not ended."""
    for path in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
            state, _, its_group = file.read().rpartition(") ")[2].split()[:3]
            if int(its_group) == group and state not in "ZX":
                return True
    return False


def traces(folder):
    with contextlib.suppress(FileNotFoundError):
        return [name for name in os.listdir(folder) if name.endswith(".trace")]
    return []


# ---- what is not a run

def make_file(path):
    path.write_text("int main(void) { return 0; }\n")


def make_other_folder(path):
    path.mkdir()
    (path / "train.py").write_text("import torch\n")


def make_false_trace(path):
    path.mkdir()
    (path / "perf.trace").write_text("not one of tidemark's")


def make_run_with_more(path):
    shell(f"tidemark run -q -o {path} -- {QUICK}", path.parent)
    (path / "notes.txt").write_text("mine")


def make_run_with_folder(path):
    shell(f"tidemark run -q -o {path} -- {QUICK}", path.parent)
    (path / ".git").mkdir()


def make_run_with_link(path):
    shell(f"tidemark run -q -o {path} -- {QUICK}", path.parent)
    os.symlink("/etc/passwd", path / "x.trace")


def make_link_to_run(path):
    shell(f"tidemark run -q -o {path}.real -- {QUICK}", path.parent)
    os.symlink(f"{path}.real", path)


def make_dangling_link(path):
    os.symlink("nowhere", path)


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


NOT_RUNS = {
    "file": (make_file, "is a file"),
    "folder": (make_other_folder, "other things in it (train.py)"),
    "false_trace": (make_false_trace, "other things in it (perf.trace)"),
    "notes": (make_run_with_more, "other things in it (notes.txt)"),
    "inner_folder": (make_run_with_folder, "other things in it (.git)"),
    "link_inside": (make_run_with_link, "other things in it (x.trace)"),
    "link": (make_link_to_run, "is a symbolic link"),
    "dangling": (make_dangling_link, "is a symbolic link"),
    "socket": (make_socket, "is a socket"),
    "fifo": (os.mkfifo, "is a FIFO"),
}


@pytest.mark.parametrize("kind", NOT_RUNS)
@pytest.mark.parametrize("slashes", ["", "//"])
def test_not_a_run(kind, slashes, tmp_path):
    make, reason = NOT_RUNS[kind]
    make(tmp_path / "weird.c")
    assert_refused(f"weird.c{slashes}", tmp_path, reason)


def test_name_with_escapes_is_not_printed(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "\033[2Jx").touch()
    assert_refused("a", tmp_path, "other things in it (?[2Jx)")


@pytest.mark.parametrize("output", [".", "..", "/", "x/.", "x/..", "./", "//", "''"])
def test_no_name_for_a_folder(output, tmp_path):
    before = picture(tmp_path)
    done = run(output, tmp_path, "touch STARTED")
    assert done.returncode == 1 and "is no name for a new folder" in done.stderr
    assert picture(tmp_path) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make files of another user")
def test_run_of_another_user(tmp_path):
    run("a.tmk", tmp_path)
    os.chown(tmp_path / "a.tmk", 12345, 12345)
    assert_refused("a.tmk", tmp_path, "belongs to another user (12345)")


# ---- what makes way

def test_ended_runs_are_moved(tmp_path):
    for said in ("", "it is a.tmk.1 now", "it is a.tmk.2 now"):
        done = run("a.tmk", tmp_path)
        assert done.returncode == 0 and said in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["a.tmk", "a.tmk.1", "a.tmk.2"]
    assert all(len(traces(tmp_path / name)) == 1 for name in os.listdir(tmp_path))


def test_nothing_is_replaced(tmp_path):
    """The first free name: an empty folder, a file and a dangling link are not free."""
    run("a.tmk", tmp_path)
    (tmp_path / "a.tmk.1").mkdir()
    (tmp_path / "a.tmk.2").touch()
    os.symlink("nowhere", tmp_path / "a.tmk.3")
    assert "it is a.tmk.4 now" in run("a.tmk", tmp_path).stderr
    assert os.listdir(tmp_path / "a.tmk.1") == [] and os.readlink(tmp_path / "a.tmk.3") == "nowhere"


def test_run_of_a_killed_process_is_moved(tmp_path):
    """With what it has left: the ring is merged when the run is read."""
    with background(f"tidemark run -q -o a.tmk -- {LONG}", tmp_path) as job:
        wait_until("a whole trace", lambda: shell("tidemark check a.tmk", tmp_path).returncode == 0)
        program = child_of(job.pid)
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
        wait_until("its end", lambda: not os.path.exists(f"/proc/{program}"))
    assert "it is a.tmk.1 now" in run("a.tmk", tmp_path).stderr
    assert "merged" in shell("tidemark check a.tmk.1", tmp_path).stdout


def test_own_files_of_a_run(tmp_path):
    """What a run keeps for itself does not make it somebody's folder; empty traces neither."""
    run("a.tmk", tmp_path)
    for name in ("tidemark.0.0123456789abcdef.account", ".tidemark-anything",
                 "h.r-.7.20260101T000000.000.trace"):
        (tmp_path / "a.tmk" / name).touch()
    assert "it is a.tmk.1 now" in run("a.tmk", tmp_path).stderr


def test_run_with_processes_that_were_not_recorded(tmp_path):
    """Its list of them is its own, and so is a ring that was being moved there."""
    inner = f"tidemark run -q -o {tmp_path}/inner.tmk -- true"
    run("a.tmk", tmp_path, f"sh -c '{inner}; {QUICK}'")
    assert "refused" in os.listdir(tmp_path / "a.tmk")
    (tmp_path / "a.tmk" / "tidemark.0.7.ring.part").touch()
    assert "it is a.tmk.1 now" in run("a.tmk", tmp_path).stderr
    assert len(traces(tmp_path / "a.tmk")) == 1


@pytest.mark.parametrize("name", ["refused", "refused.txt"])
def test_list_of_somebody_else(name, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / name).write_text("invitations: three\n")
    assert_refused("a", tmp_path, f"other things in it ({name})")


def test_empty_folder_stays_when_nothing_is_recorded(tmp_path):
    (tmp_path / "a").mkdir(0o755)
    before = picture(tmp_path)
    done = shell("tidemark run -o a -- true", tmp_path)
    assert done.returncode == 0 and "true reported no allocation" in done.stderr, done.stderr
    assert picture(tmp_path) == before


def test_empty_folder_is_recorded_into(tmp_path):
    (tmp_path / "a").mkdir()
    inode = os.stat(tmp_path / "a").st_ino
    assert run("a/", tmp_path).stderr == ""
    assert os.stat(tmp_path / "a").st_ino == inode and len(traces(tmp_path / "a")) == 1
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("output", ["a", "x/y/z.tmk", "./a.tmk", "../{}/a.tmk", "-a.tmk", "a b.tmk",
                                    "n" * 241, "n" * 250, "é.tmk"])
def test_names(output, tmp_path):
    output = output.format(tmp_path.name)
    done = shell(f"tidemark run -o '{output}' -- {QUICK}", tmp_path)
    assert done.returncode == 0
    assert len(traces(os.path.join(tmp_path, output))) == 1
    following = done.stderr.split("next: ")[1].strip()
    assert shell(following, tmp_path).returncode == 0
    assert len(os.listdir(tmp_path)) == 1


def test_missing_parents_go_again(tmp_path):
    """A program that records nothing leaves nothing, the folders above the run neither."""
    (tmp_path / "x").mkdir()
    assert run("x/y/z/a.tmk", tmp_path, "true").returncode == 0
    assert os.listdir(tmp_path / "x") == []
    assert os.listdir(tmp_path) == ["x"]


def test_parent_is_a_file(tmp_path):
    (tmp_path / "x").touch()
    assert_refused("x/a.tmk", tmp_path, "Not a directory")


# ---- living runs

def test_run_that_is_recording(tmp_path):
    with background(f"tidemark run -q -o a.tmk -- {LONG}", tmp_path) as job:
        wait_until("a trace", lambda: traces(tmp_path / "a.tmk"))
        before = set(os.listdir(tmp_path)), traces(tmp_path / "a.tmk")
        for output in ("a.tmk", "a.tmk/", f"{tmp_path}/a.tmk"):
            done = run(output, tmp_path)
            assert done.returncode == 1 and "another tidemark is recording into" in done.stderr
        assert (set(os.listdir(tmp_path)), traces(tmp_path / "a.tmk")) == before
        job.terminate()
        assert job.wait(PATIENCE_S) == 128 + signal.SIGTERM
    assert "it is a.tmk.1 now" in run("a.tmk", tmp_path).stderr


def test_run_that_has_not_recorded_yet(tmp_path):
    with background("tidemark run -q -o a.tmk -- sh -c 'echo ready; read x'", tmp_path,
                    stdin=subprocess.PIPE) as job:
        assert job.stdout.readline() == "ready\n"
        done = run("a.tmk", tmp_path)
        assert done.returncode == 1 and "another tidemark is recording into" in done.stderr
        assert not os.path.exists(tmp_path / "a.tmk")
        job.communicate("\n")
    assert os.listdir(tmp_path) == []


def test_living_process_without_its_tidemark(tmp_path):
    """`run` was killed, its program records on; the same for a program started by `env`."""
    with background(f"tidemark run -q -o a.tmk -- {LONG}", tmp_path) as job:
        wait_until("a trace", lambda: traces(tmp_path / "a.tmk"))
        program = child_of(job.pid)
        job.kill()
        job.wait()
        done = run("a.tmk", tmp_path)
        assert done.returncode == 1 and f"process {program} still records into" in done.stderr
        os.rename(tmp_path / "a.tmk", tmp_path / "b.tmk")  # a hand may move it
        done = run("b.tmk", tmp_path)
        assert done.returncode == 1 and f"process {program} still records into" in done.stderr


def test_ring_in_the_run_folder(tmp_path):
    """Where there is no tmpfs rings are in the run; a held one says that it lives."""
    line = f"tidemark run -q -o a.tmk -- {LONG}"
    if subprocess.run(["unshare", "-m", "true"], check=False).returncode != 0:
        pytest.skip("no mount namespaces here")
    hidden = f"unshare -m sh -c 'mount -t tmpfs -o size=1M none /dev/shm; exec {line}'"
    with background(hidden, tmp_path) as job:
        wait_until("a trace", lambda: traces(tmp_path / "a.tmk"))
        assert any(name.endswith(".ring") for name in os.listdir(tmp_path / "a.tmk"))
        program = child_of(job.pid)
        os.kill(job.pid, signal.SIGKILL)
        job.wait()
        assert os.path.exists(f"/proc/{program}")
        done = run("a.tmk", tmp_path)
        assert done.returncode == 1 and "still records into" in done.stderr


def test_ring_of_a_killed_child_in_the_run_folder(tmp_path):
    """It is merged while the program goes on, as one in memory is."""
    if subprocess.run(["unshare", "-m", "true"], check=False).returncode != 0:
        pytest.skip("no mount namespaces here")
    (tmp_path / "job.sh").write_text(
        f"{LONG} >/dev/null & until ls a.tmk/*.ring >/dev/null 2>&1; do sleep 0.05; done\n"
        "sleep 0.3; ls a.tmk | grep -c '[.]ring$'\n"
        "kill -9 $!; wait $! 2>/dev/null; for i in $(seq 200); do ls a.tmk/*.ring >/dev/null 2>&1 || break; sleep 0.05; done\n"
        "ls a.tmk | grep -c '[.]ring$'; exit 9\n")
    done = shell("unshare -m sh -c 'mount -t tmpfs -o size=1M none /dev/shm; "
                 "exec tidemark run -q -o a.tmk -- sh job.sh'", tmp_path)
    assert (done.returncode, done.stdout) == (9, "1\n0\n"), done.stderr
    assert shell("tidemark check a.tmk", tmp_path).returncode == 0


def test_ring_that_a_sibling_moved(tmp_path):
    """The ring of a killed process lies beside its trace, not where the trace says: the run has ended."""
    line = f"env LD_PRELOAD={BUILD}/libtidemark.so TIDEMARK_RUN={tmp_path}/a.tmk {LONG}"
    with background(line, tmp_path) as job:
        wait_until("a trace", lambda: traces(tmp_path / "a.tmk"))
        ring, = glob.glob(f"/dev/shm/tidemark.*.{job.pid}.*.ring")
        job.kill()
        job.wait()
    shutil.move(ring, tmp_path / "a.tmk")
    assert "it is a.tmk.1 now" in run("a.tmk", tmp_path).stderr


def test_killed_process_without_a_ring_file(tmp_path):
    """Its ring was memory of its own (ulimit -f). While it lives the run stays, then it makes way at once."""
    line = f"bash -c 'ulimit -f 8192; exec tidemark run -q -o a.tmk -- {LONG}'"
    with background(line, tmp_path) as job:
        wait_until("a trace", lambda: traces(tmp_path / "a.tmk"))
        program = child_of(job.pid)
        assert glob.glob(f"/dev/shm/tidemark.*.{program}.*.ring") == []
        job.kill()
        job.wait()
        os.utime(tmp_path / "a.tmk" / traces(tmp_path / "a.tmk")[0], (time.time() - 3600,) * 2)
        done = run("a.tmk", tmp_path)
        assert done.returncode == 1 and f"process {program} still records into" in done.stderr
    wait_until("its end", lambda: not os.path.exists(f"/proc/{program}"))
    assert "it is a.tmk.1 now" in run("a.tmk", tmp_path).stderr


def test_ring_that_cannot_be_seen(tmp_path):
    """Another /dev/shm: a trace that is being written is not moved, an old one is."""
    line = f"tidemark run -q -o a.tmk -- {LONG}"
    if subprocess.run(["unshare", "-mu", "true"], check=False).returncode != 0:
        pytest.skip("no mount namespaces here")
    hidden = f"unshare -mu sh -c 'hostname other; mount -t tmpfs none /dev/shm; exec {line}'"
    with background(hidden, tmp_path) as job:
        wait_until("a trace", lambda: traces(tmp_path / "a.tmk"))
        program = child_of(job.pid)
        job.kill()
        job.wait()
        done = run("a.tmk", tmp_path)
        assert done.returncode == 1 and "on another machine, or in a container" in done.stderr
    wait_until("its end", lambda: not os.path.exists(f"/proc/{program}"))
    trace, = traces(tmp_path / "a.tmk")
    os.utime(tmp_path / "a.tmk" / trace, (time.time() - 3600,) * 2)
    assert "it is a.tmk.1 now" in run("a.tmk", tmp_path).stderr


def test_container_with_this_host_name(tmp_path):
    """Its processes are numbered anew: none of that number is here, and yet it lives."""
    if subprocess.run(["unshare", "-mpf", "true"], check=False).returncode != 0:
        pytest.skip("no PID namespaces here")
    free = next(n for n in range(30000, 1000, -1) if not os.path.exists(f"/proc/{n}"))
    program = (f"env LD_PRELOAD={BUILD}/libtidemark.so TIDEMARK_RUN={tmp_path}/a.tmk {LONG}")
    hidden = (f"unshare -mpf --mount-proc sh -c 'mount -t tmpfs none /dev/shm; "
              f"echo {free - 1} >/proc/sys/kernel/ns_last_pid; {program}; true'")
    with background(hidden, tmp_path):
        wait_until("a trace", lambda: traces(tmp_path / "a.tmk"))
        wait_until("a whole trace", lambda: shell("tidemark check a.tmk", tmp_path).returncode == 0)
        trace, = traces(tmp_path / "a.tmk")
        assert f".{free}." in trace
        done = run("a.tmk", tmp_path, "touch STARTED")
        assert done.returncode == 1 and "in a container, still records into" in done.stderr
        assert os.listdir(tmp_path) == ["a.tmk"]
    trace, = traces(tmp_path / "a.tmk")
    os.utime(tmp_path / "a.tmk" / trace, (time.time() - 3600,) * 2)
    assert "it is a.tmk.1 now" in run("a.tmk", tmp_path).stderr


def test_attach_and_demo_refuse_too(tmp_path):
    make_file(tmp_path / "weird.c")
    make_file(tmp_path / "tidemark-demo.tmk")
    before = picture(tmp_path)
    with subprocess.Popen(["sleep", "60"]) as target:
        done = shell(f"tidemark attach -o weird.c {target.pid}", tmp_path)
        target.kill()
    assert done.returncode == 1 and "weird.c is a file, not a run" in done.stderr
    done = shell("tidemark demo", tmp_path)
    assert done.returncode == 1 and "tidemark-demo.tmk is a file, not a run" in done.stderr
    assert picture(tmp_path) == before


# ---- two at once

def start_many(n, arguments, folder):
    return [subprocess.Popen([TIDEMARK, "run", "-q", *arguments], cwd=folder, env=environment(),
                             stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(n)]


@pytest.mark.parametrize("output", ["a.tmk", "x/y/a.tmk"])
@pytest.mark.parametrize("before", ["nothing", "ended", "empty"])
def test_one_of_many_wins(output, before, tmp_path):
    for round_ in range(3):
        folder = tmp_path / str(round_)
        folder.mkdir()
        if before == "ended":
            run(output, folder)
        elif before == "empty":
            os.makedirs(folder / output)
        jobs = start_many(6, ["-o", output, "--", "sh", "-c", f"{QUICK}; read x; exit 4"], folder)
        wait_until("the losers", lambda: sum(job.poll() is not None for job in jobs) >= 5)
        ends = [(job.communicate(timeout=PATIENCE_S)[1], job.returncode) for job in jobs]
        assert sorted(code for _, code in ends) == [1] * 5 + [4], ends
        assert all("another tidemark is recording into" in said for said, code in ends if code == 1)
        assert len(traces(folder / output)) == 1
        assert len(os.listdir((folder / output).parent)) == 1 + (before == "ended")


def test_names_of_the_same_second(tmp_path):
    """Without -o everybody gets a name of his own."""
    jobs = start_many(8, ["--", os.path.join(BUILD, "tinytrain"), "--steps", "1", *SMALL.split()],
                      tmp_path)
    assert [job.wait(PATIENCE_S) for job in jobs] == [0] * 8
    for job in jobs:
        job.communicate()
    assert len(os.listdir(tmp_path)) == 8
    assert all(len(traces(tmp_path / name)) == 1 for name in os.listdir(tmp_path))


def test_lock_of_a_killed_tidemark(tmp_path):
    """It holds nobody up, and the next run clears it away."""
    with background("tidemark run -q -o a.tmk -- sh -c 'echo ready; exec sleep 60'", tmp_path) as job:
        assert job.stdout.readline() == "ready\n"
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    assert os.listdir(tmp_path) == [".tidemark-run.a.tmk"]
    assert run("b.tmk", tmp_path).returncode == 0
    assert os.listdir(tmp_path) == ["b.tmk"]


# ---- folders that cannot be written

@contextlib.contextmanager
def as_user(folder):
    """How to run something without root's rights, in a folder that is that user's."""
    if os.geteuid() != 0:
        yield ""
    elif not shutil.which("setpriv"):
        pytest.skip("no setpriv here")
    else:
        for path in (folder, *folder.parents[:3]):
            os.chmod(path, os.stat(path).st_mode | 0o755)
        os.chown(folder, 65534, 65534)
        yield "setpriv --reuid 65534 --regid 65534 --clear-groups "


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o666])
def test_lock_of_another_user(mode, tmp_path):
    """In a folder for all, such as /tmp, nobody can block a name, nor lock what is another's."""
    lock = tmp_path / ".tidemark-run.a.tmk"
    with as_user(tmp_path) as front:
        os.chmod(tmp_path, 0o1777)
        os.chown(tmp_path, 0, 0)
        with open(lock, "w") as held:
            os.chmod(lock, mode)
            fcntl.flock(held, fcntl.LOCK_EX)
            done = shell(f"{front}tidemark run -q -o a.tmk -- {QUICK}", tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert len(traces(tmp_path / "a.tmk")) == 1 and lock.exists()
        os.unlink(lock)
        with background(f"{front}tidemark run -q -o b.tmk -- sh -c 'echo ready; read x'", tmp_path,
                        stdin=subprocess.PIPE) as job:
            assert job.stdout.readline() == "ready\n"
            info = os.stat(tmp_path / ".tidemark-run.b.tmk")
            assert (info.st_uid, stat.S_IMODE(info.st_mode)) == (65534, 0o600)
            job.communicate("\n")
    assert os.listdir(tmp_path) == ["a.tmk"]


def test_unwritable_parent(tmp_path):
    """The program runs, and the reason is said at the end."""
    with as_user(tmp_path) as front:
        os.chmod(tmp_path, 0o555)
        done = shell(f"{front}tidemark run -o a.tmk -- {QUICK}", tmp_path)
        os.chmod(tmp_path, 0o755)
    assert done.returncode == 0 and "cannot be written to" in done.stderr
    assert os.listdir(tmp_path) == []


def test_unreadable_folder(tmp_path):
    with as_user(tmp_path) as front:
        done = shell(f"{front}mkdir -m 0 a; {front}tidemark run -o a -- touch STARTED", tmp_path)
    assert done.returncode == 1 and "a cannot be opened" in done.stderr
    assert os.listdir(tmp_path) == ["a"]


def test_empty_folder_in_an_unwritable_parent(tmp_path):
    """A volume of its own: it is recorded into, by one at a time."""
    with as_user(tmp_path) as front:
        (tmp_path / "out").mkdir()
        if front:
            os.chown(tmp_path / "out", 65534, 65534)
        os.chmod(tmp_path, 0o555)
        with background(f"{front}tidemark run -q -o out -- sh -c 'echo ready; read x; {QUICK}'",
                        tmp_path, stdin=subprocess.PIPE) as job:
            assert job.stdout.readline() == "ready\n"
            done = shell(f"{front}tidemark run -o out -- {QUICK}", tmp_path)
            assert done.returncode == 1 and "another tidemark is recording into" in done.stderr
            job.communicate("\n")
        done = shell(f"{front}tidemark run -o out -- {QUICK}", tmp_path)
        os.chmod(tmp_path, 0o755)
    assert done.returncode == 1 and "cannot be moved" in done.stderr
    assert os.listdir(tmp_path) == ["out"] and len(traces(tmp_path / "out")) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_program_that_gives_up_root(tmp_path):
    """The folder is made by the process that records, as its user."""
    with as_user(tmp_path) as front:
        os.chown(tmp_path, 65534, 65534)
        done = shell(f"tidemark run -q -o a.tmk -- {front}{QUICK}", tmp_path)
    assert done.returncode == 0
    assert os.stat(tmp_path / "a.tmk").st_uid == 65534 and len(traces(tmp_path / "a.tmk")) == 1


@pytest.mark.parametrize("command, name", [("./python3 -u job/train.py other.py", "train.py"), ("./python3 -m train", "python3"),
                                           ("./bash train.py", "bash")])
def test_named_by_the_script(tmp_path, command, name):
    """Runs of Python have the name of the script, as with `import tidemark`."""
    for program in ("python3", "bash"):
        (tmp_path / program).write_text(f"#!/bin/sh\nexec {QUICK} --quiet\n", encoding="ascii")
        (tmp_path / program).chmod(0o755)
    assert shell(f"tidemark run -q -- {command}", tmp_path).returncode == 0
    (run_folder,) = glob.glob(str(tmp_path / "*.tmk"))
    assert re.fullmatch(re.escape(name) + r"-\d{8}-\d{6}[.]tmk", os.path.basename(run_folder))
