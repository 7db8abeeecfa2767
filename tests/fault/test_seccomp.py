# SPDX-License-Identifier: MIT
"""Programs that restrict their system calls: they live as they would alone, what they did before is
on record, and why the recording ended is said."""
import os
import re
import shutil
import subprocess
import sys

import pytest
from fault_kit import program
from test_limits import needs_root

RESTRICTED = "the program restricted its system calls (seccomp)"
REFUSED = ("tidemark: nothing is recorded: a seccomp filter around tidemark kills for system calls that a recorder "
           "makes\n")
UNKNOWN = "it runs under a seccomp filter that tidemark does not know"

# What a recorder uses and this program does not.
CALLS = ["fdatasync", "pwritev", "pread64", "futex", "madvise", "munmap", "mprotect", "clone", "clone3",
         "exit", "openat", "close", "read", "fcntl", "fallocate", "ftruncate", "unlink", "unlinkat",
         "mkdir", "mkdirat", "readlink", "poll", "prctl", "gettid", "getpid", "getuid", "geteuid",
         "getppid", "getrandom", "uname", "statfs", "socket", "bind", "listen", "accept4", "shutdown",
         "fchmod", "set_robust_list", "rt_sigprocmask", "sigaltstack", "tgkill", "sched_yield",
         "process_vm_readv"]


def plain(watch, *args):
    """(exit status, output) when nobody watches."""
    done = subprocess.run(args, capture_output=True, text=True, timeout=60,
                          env=watch.environment(preload=False), check=False)
    return done.returncode if done.returncode >= 0 else 128 - done.returncode, done.stdout


def watched(watch, *args, **more):
    """The same under `tidemark run`, and what that says at the end."""
    done = subprocess.run(
        [program("tidemark"), "run", "-o", watch.run, "--", *args], capture_output=True, text=True,
        timeout=60, env=dict(watch.environment(preload=False), **more), check=False)
    return done.returncode, done.stdout, done.stderr


def stopped(watch):
    """[state, reason, allocations] of each process."""
    text = watch.tidemark("query", "--format", "csv", watch.run,
                          "SELECT state, reason, allocations FROM processes ORDER BY 1, 3")
    return [line.split(",") for line in text.splitlines()[1:]]


def same(watch, *args, **more):
    args = [program("sandboxed"), *args]
    status, output, said = watched(watch, *args, **more)
    assert (status, output) == plain(watch, *args), said
    return said


@pytest.mark.parametrize("call", CALLS)
def test_call_kills(watch, call):
    """Each call of ours, by a filter for all threads, before and after the first event."""
    said = same(watch, "late", "tsync", f"kill:{call}")
    assert stopped(watch) == [["stopped", RESTRICTED, "100"]]
    assert "Recording stopped after" in said and RESTRICTED in " ".join(said.split())
    assert list(watch.rings.iterdir()) == []
    watch.run.rename(watch.folder / "before.tmk")
    said = same(watch, "early", "tsync", f"kill:{call}")
    assert f"{RESTRICTED}\n" in said and "nothing was recorded: process " in said
    assert not watch.run.exists() and not watch.run.with_name("a.tmk.refused").exists()


@pytest.mark.parametrize("how", ["prctl", "prctl_call", "seccomp", "tsync"])
@pytest.mark.parametrize("when", ["early", "late", "twice", "again"])
def test_allow_list(watch, when, how):
    """All calls but nine kill; `twice` and `again`: after another filter."""
    same(watch, when, how, "allow")
    if when != "early":
        assert stopped(watch) == [["stopped", RESTRICTED, "100"]]
        watch.check_ok()


@pytest.mark.parametrize("how,allocations", [("prctl", "10"), ("seccomp", None)])
def test_strict_thread(watch, how, allocations):
    """read, write and exit are left to one thread; its lane is open, or it has none yet."""
    same(watch, "early", how, "strict")
    if allocations:
        assert stopped(watch) == [["stopped", RESTRICTED, allocations]]


@pytest.mark.parametrize("call", ["fdatasync", "prctl", "gettid", "futex", "madvise"])
def test_other_threads_report(watch, call):
    """Others are in the middle of events, and open lanes, when the filter comes for all of them."""
    args = [program("sandboxed"), "threads", "tsync", f"kill:{call}"]
    if plain(watch, *args)[0] != 0:
        pytest.skip(f"the program itself ends its threads with {call}")
    for _ in range(3):
        assert watched(watch, *args)[:2] == (0, "done\n")
    assert [row[:2] for row in stopped(watch)] == [["stopped", RESTRICTED]]


def test_forked_child(watch):
    """The child's filter is its own: the parent's recording goes on."""
    same(watch, "fork", "prctl", "allow")
    assert stopped(watch) == [["closed", "", "200"], ["stopped", RESTRICTED, "100"]]


def test_vfork_child(watch):
    same(watch, "vfork", "prctl", "allow")
    assert stopped(watch) == [["closed", "", "200"]]


def test_vfork_child_that_becomes_another_program(watch):
    """The parent's recording ends in order with its _exit(): nobody has to merge its ring."""
    done = watch(program("sandboxed"), "vforkexec", "prctl", "kill:fdatasync", alone=True)
    assert (done.returncode, done.stdout) == (0, "child 0\n"), done.stderr
    assert list(watch.rings.iterdir()) == []
    assert stopped(watch) == [["closed", "", "200"]]


def test_questions_are_no_filters(watch):
    same(watch, "probe", "prctl", "none")
    assert stopped(watch) == [["closed", "", "200"]]


BY_CTYPES = """
import ctypes, struct, sys
libc = ctypes.CDLL(sys.argv[1] or None, use_errno=True)
rules = b"".join(struct.pack("HBBI", *r) for r in
                 [(0x20, 0, 0, 0), (0x15, 0, 1, int(sys.argv[2])), (6, 0, 0, 0x80000000), (6, 0, 0, 0x7fff0000)])
buffer = ctypes.create_string_buffer(rules, len(rules))
program = struct.pack("HxxxxxxP", 4, ctypes.addressof(buffer))
tidemark = ctypes.CDLL(None)
alloc = getattr(tidemark, "tidemark_record_mark", None)
if alloc:
    alloc(b"before", b"")
print(libc.prctl(38, 1, 0, 0, 0), libc.prctl(22, 2, program, 0, 0))
if alloc:
    alloc(b"after", b"")
import time
time.sleep(0.3)
print("done", flush=True)
"""


@pytest.mark.parametrize("library", ["", "libc.so.6"])
def test_python_by_ctypes(watch, library):
    """What asks the C library for prctl() by its handle is seen too."""
    args = [sys.executable, "-c", BY_CTYPES, library, "75"]  # fdatasync
    status, output, said = watched(watch, *args)
    assert (status, output) == (0, "0 0\ndone\n") == plain(watch, *args), said
    assert [row[:2] for row in stopped(watch)] == [["stopped", RESTRICTED]]


# ---- filters that were there before


def launched(filter_, *args):
    return [program("sandboxed"), "launch", filter_, "--", *args]


@pytest.mark.parametrize("filter_", ["kill:fdatasync", "kill:madvise", "kill:getpid", "kill:mkdir", "kill:prctl",
                                     "kill:clone3", "kill:futex", "errno:fdatasync", "limits",
                                     "kill:fcntl", "kill:unlink", "writing", "plain", "output"])
def test_inherited_filter_is_not_recorded_under(watch, filter_):
    """More filters than `run` has: nobody knows what they do. The recorder makes no call there that
    the loader has not made, in the same way, not even to say that it does not record."""
    args = launched(filter_, program("sandboxed"), "early", "tsync", "none")
    status, output, said = watched(watch, *args, **private(watch))
    assert (status, output) == plain(watch, *args) == (0, "done\n"), said
    lines = said.splitlines()
    assert lines == [f"tidemark: nothing was recorded: at least 1 program: {UNKNOWN}; to record all the same: "
                     "TIDEMARK_SECCOMP=trust"]
    assert not watch.run.exists() and private_files(watch) == []


def private(watch):
    """A folder of ours alone, for the environment."""
    (watch.folder / "private").mkdir(mode=0o700)
    return {"XDG_RUNTIME_DIR": str(watch.folder / "private")}


def private_files(watch):
    """What refused programs open, for `run` to see it."""
    return list((watch.folder / "private").glob("*.refusals"))


@pytest.mark.parametrize("at_once", [False, True])
def test_refused_programs_are_counted(watch, at_once):
    """One after the other, all are. At once, equal notes may become one: it says `at least`, and the
    launcher of each that is missing, which restricts itself before, is listed as what it was."""
    one = " ".join(launched("writing", program("sandboxed"), "early", "tsync", "none"))
    script = f"for i in $(seq 30); do {one} {'&' if at_once else ';'} done; wait"
    status, output, said = watched(watch, "bash", "-c", script)
    assert (status, output) == (0, "done\n" * 30), said
    *launchers, line = said.splitlines()
    n = int(line.split("at least ")[1].split(" program")[0])
    assert n == 30 or at_once
    if launchers:
        pattern = rf"process \d+(?: and (\d+) others?)?: {re.escape(RESTRICTED)}$"
        (found,) = (re.search(pattern, text) for text in launchers)
        n += 1 + int(found[1] or 0)
    assert n == 30
    assert not watch.run.exists() and not watch.run.with_name("a.tmk.refused").exists()


def test_killed_run_leaves_nothing_to_look_at(watch):
    """Its program goes on, and starts others that are refused; the next `run` removes the file."""
    script = f"echo ready; read x; {' '.join(launched('plain', program('sandboxed'), 'early', 'tsync', 'none'))}"
    more = private(watch)
    env = dict(watch.environment(preload=False), **more)
    with subprocess.Popen([program("tidemark"), "run", "-o", watch.run, "--", "bash", "-c", script], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as run:
        assert run.stdout.readline() == "ready\n"
        assert len(private_files(watch)) == 1
        subprocess.run([program("tidemark"), "doctor", "--clean"], capture_output=True, check=False, env=env)
        assert len(private_files(watch)) == 1
        run.kill()
        run.wait()
        assert run.communicate("\n", timeout=60)[0] == "done\n"
    assert len(private_files(watch)) == 1
    watch.run = watch.folder / "b.tmk"
    assert watched(watch, "true", **more)[0] == 0
    assert private_files(watch) == []


JAIL = ["unshare", "--pid", "--fork", "--mount-proc"]


@needs_root
@pytest.mark.parametrize("way", ["preload", "run"])
def test_first_process_of_a_sandbox(watch, way):
    """A sandbox that makes a PID namespace for the program: process 1 has the filter because it is
    the program."""
    args = [*JAIL, *launched("kill:fdatasync", program("sandboxed"), "early", "tsync", "none")]
    if way == "run":
        status, output, said = watched(watch, *args)
        assert (status, output) == (0, "done\n"), said
        assert UNKNOWN in said
    else:
        done = watch(*args, alone=True)
        assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
        assert UNKNOWN not in (watch.folder / "a.tmk.refused").read_text()  # the launcher's line


@needs_root
def test_attach_to_the_first_process_of_a_sandbox(watch):
    args = [*JAIL, *launched("kill:fdatasync", program("sandboxed"), "wait", "tsync", "none")]
    with subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env=watch.environment(preload=False)) as jail:
        assert jail.stdout.readline() == "ready\n"
        inside = subprocess.run(["pgrep", "-P", str(jail.pid)], capture_output=True, text=True, check=True).stdout.split()
        done = subprocess.run([program("tidemark"), "attach", inside[0], "-o", watch.run], capture_output=True, text=True,
                              env=watch.environment(preload=False), check=False)
        assert done.returncode != 0 and "has a seccomp filter" in done.stderr
        assert jail.communicate("\n", timeout=60)[0] == "done\n"
    assert jail.returncode == 0


def test_trusted_filter(watch):
    args = launched("errno:fdatasync", program("sandboxed"), "early", "tsync", "none")
    status, output, said = watched(watch, *args, TIDEMARK_SECCOMP="trust")
    assert (status, output) == (0, "done\n"), said
    assert stopped(watch) == [["closed", "", "10000"]]
    assert "missing" not in said and "not recorded" not in watch.tidemark("check", watch.run)


@pytest.mark.parametrize("filter_,is_recorded", [
    ("errno:fdatasync", True), ("errno:mkdirat", True), ("kill:fdatasync", False),
    ("kill:pwritev", False), ("kill:madvise", False), ("kill:tgkill", False), ("kill:accept4", False)])
def test_run_itself_under_a_filter(watch, filter_, is_recorded):
    """As in a container: `run` tries the filter that it has itself."""
    args = launched(filter_, program("tidemark"), "run", "-o", str(watch.run), "--",
                    program("sandboxed"), "early", "tsync", "none")
    done = subprocess.run(args, capture_output=True, text=True, timeout=60,
                          env=watch.environment(preload=False), check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    if is_recorded:
        assert stopped(watch) == [["closed", "", "10000"]]
    else:
        assert done.stderr == REFUSED and not watch.run.exists()


# What `run` cannot do without, before it can find out: signals as they are, a child, its end, and
# the C library's getrandom() at the first malloc().
NEEDED = {"x86_64": {13, 14, 56, 61, 318}, "aarch64": {134, 135, 220, 260, 278}}


def test_run_under_a_filter_for_each_call(watch):
    """Whatever system call kills: a program that lives under that filter lives under `tidemark run`
    in it, too."""
    plain_one = [program("sandboxed"), "early", "tsync", "none"]
    died = set()
    for number in range(463):
        filter_ = f"kill:{number}"
        alone = subprocess.run(launched(filter_, *plain_one), capture_output=True, timeout=60, check=False)
        if alone.returncode != 0:
            continue
        args = launched(filter_, program("tidemark"), "run", "-q", "-o", str(watch.run), "--", *plain_one)
        done = subprocess.run(args, capture_output=True, timeout=60, env=watch.environment(preload=False),
                              check=False)
        if (done.returncode, done.stdout) != (0, b"done\n"):
            died.add(number)
        shutil.rmtree(watch.run, ignore_errors=True)
    assert died <= NEEDED[os.uname().machine], died


def test_missing_process_is_said(watch):
    """One process is recorded, another is not: the summary and `check` say which and why."""
    script = (f"'{program('sandboxed')}' late tsync none; "
              f"'{program('sandboxed')}' launch kill:fdatasync -- '{program('sandboxed')}' early tsync none")
    status, output, said = watched(watch, "sh", "-c", script)
    assert (status, output) == (0, "done\ndone\n"), said
    assert "missing    at least 1 program: " in said and UNKNOWN in " ".join(said.split())
    note = [line for line in watch.tidemark("check", watch.run).splitlines() if "not recorded" in line]
    assert len(note) == 1 and note[0].startswith(f"note: not recorded: at least 1 program: {UNKNOWN}")


def test_hostile_notes(watch):
    """The file is taken for numbers: nothing else of it is shown, and not all of a large one."""
    assert watch(program("sandboxed"), "late", "tsync", "none").returncode == 0
    bad = b"1 7 0 \x1b[31mred\n\x1b]0;title\x07 7 0 x\n-1 7 0 x\n99999999999999 7 0 x\n2 4294967295 0 x\n3 12345 1 x\n"
    (watch.run / "refused").write_bytes(bad + b"4 7 0 x" + b"y" * 200_000 + b"\n5 7 0 z\n")
    text = watch.tidemark("check", watch.run)
    notes = [line for line in text.splitlines() if "not recorded" in line]
    assert "\x1b" not in text and len(notes) == 2, text
    assert notes[0].startswith(f"note: not recorded: process 1: {UNKNOWN}")
    assert notes[1] == ("note: not recorded: process 3: for a reason that this tidemark does not know "
                        "(Operation not permitted)")
    (watch.run / "refused").unlink()
    (watch.run / "refused").symlink_to("/etc/passwd")
    assert "not recorded" not in watch.tidemark("check", watch.run)


LATE = BY_CTYPES.split("tidemark = ")[0] + """
import os
print(libc.prctl(38, 1, 0, 0, 0), libc.prctl(22, 2, program, 0, 0))
library = ctypes.CDLL(sys.argv[3], mode=ctypes.RTLD_GLOBAL)
message = ctypes.create_string_buffer(500)
for option in (b"", b"", b"seccomp=trust\\n"):
    done = library.tidemark_attach(b"run=" + sys.argv[4].encode() + b"\\n" + option, message, 500)
    print(done, message.value.decode().partition(",")[0].partition("patched")[0])
os._exit(0)
"""


def test_loaded_under_a_filter(watch):
    """As `import tidemark` and `attach` do it: nothing that could kill is called, until it is said
    that the filter does no harm. (It kills for sched_yield.)"""
    done = subprocess.run([sys.executable, "-c", LATE, "", "24", program("libtidemark.so"), str(watch.run)],
                          capture_output=True, text=True, timeout=60, env=watch.environment(preload=False), check=False)
    assert done.returncode == 0, done.stderr
    refused = "-1 it has a seccomp filter that tidemark does not know\n"
    assert done.stdout == f"0 0\n{refused}{refused}0 0 import slots \n"
    assert len(watch.traces()) == 1


@pytest.mark.parametrize("filter_,line", [
    ("kill:fdatasync", "BAD     seccomp         a filter kills for calls of the recorder: nothing is recorded"),
    ("errno:fdatasync", "ok      seccomp         1 filter around this, tried: the recorder works")])
def test_doctor(watch, filter_, line):
    own = [text for text in open("/proc/self/status", encoding="utf-8") if text.startswith("Seccomp_filters:")]
    if own != ["Seccomp_filters:\t0\n"]:
        pytest.skip("there are filters around this test already, or the kernel does not count them")
    done = subprocess.run(launched(filter_, program("tidemark"), "doctor"), capture_output=True, text=True,
                          timeout=60, env=watch.environment(preload=False), check=False)
    assert line in done.stdout.splitlines(), done.stdout


@pytest.mark.parametrize("how", ["prctl", "tsync"])
@pytest.mark.parametrize("filter_", ["kill:futex", "allow"])
def test_filter_after_attach(watch, how, filter_):
    """The calls of a program that was there before us are led to us, too."""
    with subprocess.Popen([program("sandboxed"), "wait", how, filter_], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True, env=watch.environment(preload=False)) as target:
        assert target.stdout.readline() == "ready\n"
        done = subprocess.run([program("tidemark"), "attach", str(target.pid), "-o", watch.run], capture_output=True,
                              text=True, env=watch.environment(preload=False), check=False)
        if done.returncode != 0 and "ptrace" in done.stderr:
            target.communicate("\n")
            pytest.skip(done.stderr)
        assert done.returncode == 0, done.stderr
        assert target.communicate("\n", timeout=60)[0] == "done\n"
    assert target.returncode == 0
    assert stopped(watch) == [["stopped", RESTRICTED, "0"]]
