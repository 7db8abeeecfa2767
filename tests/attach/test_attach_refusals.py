# SPDX-License-Identifier: MIT
"""attach: each reason not to, with what to do about it; and containers."""
import os
import shutil
import signal
import subprocess
import time

import pytest

from attach_kit import program, settled, workshop_fixture  # noqa: F401 (a fixture)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
NOBODY, SOMEBODY = 65534, 65533


def user(uid):
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]


def copied(shop, name):
    """A program where other users can reach it."""
    path = shop.folder / name
    shutil.copy(program(name), path)
    path.chmod(0o755)
    return path


def test_no_such_process(shop):
    assert shop.refused(4194303) == "tidemark: there is no process 4194303; see: ps -e"


def test_usage(shop):
    for wrong, said in [(["abc"], "'abc' is not the number of a process; see: ps -e"),
                        (["0"], "'0' is not the number of a process; see: ps -e"),
                        (["1", "--timeout", "x"],
                         "--timeout: 'x' is not a number of seconds up to 3600")]:
        done = shop.tidemark("attach", *wrong)
        assert (done.returncode, done.stderr) == (2, f"tidemark: {said}\n")


def test_itself(shop):
    done = subprocess.run(["bash", "-c", f"exec '{program('tidemark')}' attach $$"],
                          capture_output=True, text=True, cwd=shop.folder, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith(" is this tidemark itself\n")


def test_thread(shop):
    target = shop.target("threads", "1")
    tid = max(int(t) for t in target.threads())
    assert shop.refused(tid) == (f"tidemark: {tid} is a thread of process {target.pid}; try: "
                                 f"tidemark attach {target.pid}")


def test_zombie(shop):
    target = shop.target("zombie")
    pid = int(target.ready[0])
    assert shop.refused(pid) == (f"tidemark: process {pid} has ended; only its parent has not yet "
                                 "taken note (a zombie)")


def test_kernel_thread(shop):
    try:
        with open("/proc/2/comm", encoding="utf-8") as comm:
            name = comm.read()
    except OSError:
        name = ""
    if name != "kthreadd\n":
        pytest.skip("the kernel's threads are not visible here")
    assert shop.refused(2) == "tidemark: process 2 is part of the kernel, not a program"


def test_traced(shop):
    target = shop.target("traced")
    pid = int(target.ready[0])
    assert shop.refused(pid) == (f"tidemark: process {pid} is being traced by process {target.pid} "
                                 "(attach_target), and a process has one tracer; end that first")


def test_stopped(shop):
    target = shop.target("idle")
    os.kill(target.pid, signal.SIGSTOP)
    state = f"/proc/{target.pid}/stat"
    assert settled(lambda: open(state, encoding="utf-8").read().split()[2], "T") == "T"
    assert shop.refused(target.pid) == (
        f"tidemark: process {target.pid} is stopped and cannot load anything; first: kill -CONT "
        f"{target.pid}")
    os.kill(target.pid, signal.SIGCONT)
    shop.attach(target.pid)


def test_seccomp(shop):
    """A filter may kill for what attaching calls in the process: nothing is tried, unless somebody
    says that it does no such thing."""
    target = shop.target("seccomp")
    assert shop.refused(target.pid) == (
        f"tidemark: process {target.pid} has a seccomp filter, which may kill it for what attaching "
        "calls in it; start it with: tidemark run; if you know that the filter kills nothing: "
        f"TIDEMARK_SECCOMP=trust tidemark attach {target.pid}")
    assert shop.refused(target.pid, before=("env", "TIDEMARK_SECCOMP=trust")) == (
        f"tidemark: process {target.pid} may not map executable memory (it has a seccomp filter; "
        "start it with: tidemark run): not permitted")
    assert target.end() == "ended"


@pytest.fixture(name="static_target")
def make_static(shop):
    """The target linked statically."""
    source = os.path.join(os.path.dirname(__file__), "attach_target.c")
    path = shop.folder / "static_target"
    done = subprocess.run(["cc", "-static", "-D_GNU_SOURCE=", "-w", "-o", path, source],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("no static C library here: " + done.stderr[-200:])
    return path


def test_static(shop, static_target):
    target = shop.start(static_target, "idle")
    assert shop.refused(target.pid) == (
        f"tidemark: process {target.pid} is linked statically (it has no C library to load anything "
        "with); link it dynamically")
    assert target.end() == "ended"


def test_musl(shop, static_target):
    """A program without glibc that has musl's loader mapped."""
    musl = shop.folder / "ld-musl-x86_64.so.1"
    musl.write_bytes(b"\0" * 4096)
    target = shop.start(static_target, "mapped", musl)
    assert shop.refused(target.pid) == (
        f"tidemark: process {target.pid} uses musl as its C library (Alpine), libtidemark.so needs "
        "glibc; run the program in an image with glibc")


@needs_root
def test_other_user(shop):
    tool = copied(shop, "tidemark")
    target = shop.start(*user(NOBODY), copied(shop, "attach_target"), "idle")
    assert shop.refused(target.pid, before=user(SOMEBODY), tool=tool) == (
        f"tidemark: process {target.pid} belongs to another user ({NOBODY}, you are {SOMEBODY}); "
        "run tidemark as that user, or with sudo")
    done = shop.tidemark("attach", target.pid, "-o", "own.tmk", before=user(NOBODY), tool=tool)
    if "ptrace_scope is 1" not in done.stderr:
        assert done.returncode == 0, done.stderr
        assert (shop.folder / "own.tmk" / "calls").stat().st_uid == NOBODY
    assert target.end() == "ended"


@needs_root
def test_root_to_user(shop):
    """The run's folder is that user's, in a folder that is not."""
    target = shop.start(*user(NOBODY), copied(shop, "attach_target"), "idle")
    shop.folder.chmod(0o755)
    _, calls, _ = shop.attach(target.pid)
    assert calls[0].startswith(f"call 1 pid {target.pid} ")
    assert (shop.folder / "run1.tmk").stat().st_uid == NOBODY
    assert target.end() == "ended"


@needs_root
def test_undumpable(shop):
    tool = copied(shop, "tidemark")
    target = shop.start(*user(NOBODY), copied(shop, "attach_target"), "undumpable")
    said = shop.refused(target.pid, before=user(NOBODY), tool=tool)
    if "ptrace_scope is 1" not in said:
        assert said == (
            f"tidemark: the kernel forbids attaching to process {target.pid}: it has more rights "
            "than you, or has made itself undumpable (PR_SET_DUMPABLE); try: sudo tidemark attach "
            f"{target.pid}")


# ---- containers

def start_container(shop, script):
    """attach_target idle in namespaces of its own, after `script`; (target, its number here)."""
    inner = f"{script}; exec '{program('attach_target')}' idle"
    target = shop.start("unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", inner)
    with open(f"/proc/{target.pid}/task/{target.pid}/children", encoding="utf-8") as children:
        return target, int(children.read())


@pytest.fixture(name="namespaces")
def need_namespaces():
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--mount-proc", "true"],
                          capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("no namespaces of its own here: " + done.stderr.decode()[-200:])


def test_container_same_files(shop, namespaces):
    """Another namespace, but the library and the folder are where they are for us."""
    target, pid = start_container(shop, "true")
    said, calls, _ = shop.attach(pid)
    assert calls[0].startswith("call 1 pid 1 main 0 ")
    assert "the library was loaded from its file" in said
    assert "tidemark: in its own namespace it is process 1\n" in said
    os.kill(pid, signal.SIGTERM)
    assert target.wait() == "ended"


def test_container_other_files(shop, namespaces):
    """Neither our library nor our folder is there: memfd, and a run of its own in its /tmp."""
    target, pid = start_container(shop, f"mount -t tmpfs none '{shop.folder}'")
    fds = sorted(os.listdir(f"/proc/{pid}/fd"))
    name = f"tidemark-test-{pid}.tmk"
    try:
        done = shop.tidemark("attach", pid, "-o", name, "--verbose")
        assert done.returncode == 0, done.stderr
        assert done.stderr.startswith(f"tidemark: process {pid} sees other files (a container): its "
                                      f"run is its own /tmp/{name}\n")
        assert "the library was put into its memory (memfd)" in done.stderr
        assert f"next: tidemark report /proc/{pid}/root/tmp/{name}" in done.stderr
        with open(f"/proc/{pid}/root/tmp/{name}/calls", encoding="utf-8") as calls:
            lines = calls.read().splitlines()
        assert lines[0].startswith("call 1 pid 1 main 0 ")
        assert lines[1:] == [f"run=/tmp/{name}", "injected=1"]
        assert settled(lambda: sorted(os.listdir(f"/proc/{pid}/fd")), fds) == fds, "one is left"
        again = shop.tidemark("attach", pid, "-o", name, "--verbose")
        assert again.returncode == 0, again.stderr
        assert "the library was there already" in again.stderr
    finally:
        shutil.rmtree(f"/proc/{pid}/root/tmp/{name}", ignore_errors=True)
    os.kill(pid, signal.SIGTERM)
    assert target.wait() == "ended"


def test_killed_meanwhile(shop):
    """A target that is killed while we attach, again and again: said, never a hang."""
    for delay_ms in (0, 1, 2, 4):
        target = shop.target("malloc")
        tool = subprocess.Popen([program("tidemark"), "attach", str(target.pid), "-o", "killed.tmk"],
                                cwd=shop.folder, stderr=subprocess.PIPE, text=True,
                                env=dict(os.environ, TIDEMARK_LIB=str(shop.library)))
        time.sleep(delay_ms / 1000)
        target.process.kill()
        _, said = tool.communicate(timeout=20)
        assert tool.returncode in (0, 1)
        assert said.startswith("tidemark: ")
