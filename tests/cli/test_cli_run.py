# SPDX-License-Identifier: MIT
"""`tidemark run` keeps out of the way: environment, signals, terminal, children that outlive it."""
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time

import pytest
from test_golden import BUILD, SMALL, environment, shell

TIDEMARK = os.path.join(BUILD, "tidemark")
PATIENCE_S = 60

# Says "ready", then each signal it gets, until it has got SIGTERM or SIGINT.
LISTENER = """
import os, signal, sys, time
def got(number, frame):
    os.write(1, signal.Signals(number).name.encode() + b"\\n")  # print() must not be interrupted
    if number in (signal.SIGTERM, signal.SIGINT):
        time.sleep(0.3)  # a second one would come now
        sys.exit(5)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1,
               signal.SIGUSR2):
    signal.signal(number, got)
os.write(1, b"ready\\n")
while True:
    time.sleep(1)
"""


def wait_until(what, condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.01)


# ---- environment

def test_environment(tmp_path):
    line = "LD_PRELOAD=/nowhere/other.so tidemark run -q -o x/a.tmk --max-size 5MiB -- env"
    seen = dict(line.split("=", 1) for line in shell(line, tmp_path).stdout.splitlines())
    assert seen["LD_PRELOAD"] == f"{os.path.realpath(BUILD)}/libtidemark.so:/nowhere/other.so"
    assert seen["TIDEMARK_RUN"] == f"{tmp_path}/x/a.tmk"
    assert seen["TIDEMARK_MAX_SIZE"] == str(5 << 20)
    assert os.listdir(tmp_path) == []


def test_signal_state_is_inherited(tmp_path):
    """Blocked and ignored signals of the program are those that we were started with."""
    look = "grep -E 'Sig(Blk|Ign)' /proc/self/status"
    for before in ("", "trap '' HUP XFSZ; "):
        alone = shell(f"{before}{look}", tmp_path).stdout
        assert shell(f"{before}tidemark run -q -- {look}", tmp_path).stdout == alone


def test_input_and_output_are_its_own(tmp_path):
    done = shell("printf 'a\\0b' | tidemark run -q -- cat | od -c | head -n 1", tmp_path)
    assert done.stdout.split()[1:] == ["a", "\\0", "b"]


def test_default_name(tmp_path):
    line = f"tidemark run -q -- tinytrain --steps 1 {SMALL}"
    shell(f"{line}; {line}", tmp_path)
    names = sorted(os.listdir(tmp_path))
    assert len(names) == 2
    assert all(re.fullmatch(r"tinytrain-\d{8}-\d{6}(-2)?\.tmk", name) for name in names)


# ---- signals

@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGQUIT])
def test_signal_is_handed_on(number, tmp_path):
    """What comes to us goes to the program, once; its status is ours."""
    with subprocess.Popen([TIDEMARK, "run", "-q", "--", sys.executable, "-c", LISTENER],
                          stdout=subprocess.PIPE, text=True, cwd=tmp_path,
                          env=environment()) as watched:
        assert watched.stdout.readline() == "ready\n"
        watched.send_signal(number)
        assert watched.stdout.readline() == number.name + "\n"
        watched.send_signal(signal.SIGTERM)
        assert watched.stdout.read() == "SIGTERM\n"
        assert watched.wait(PATIENCE_S) == 5


def test_killed_program(tmp_path):
    done = shell("tidemark run -- sh -c 'kill -KILL $$'", tmp_path)
    assert done.returncode == 128 + signal.SIGKILL


class Terminal:
    """A program in the foreground of a terminal of its own."""

    def __init__(self, arguments, folder, **variables):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(arguments[0], arguments, {**environment(), **variables})
        self.text = ""

    def read_until(self, wanted):
        while wanted not in self.text:
            ready, _, _ = select.select([self.fd], [], [], PATIENCE_S)
            assert ready, f"no {wanted!r} in {self.text!r}"
            self.text += os.read(self.fd, 4096).decode(errors="replace")

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait(self):
        try:
            while True:
                part = os.read(self.fd, 4096).decode(errors="replace")
                if not part:
                    break
                self.text += part
        except OSError:
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


def test_interrupt_comes_once(tmp_path):
    """^C reaches the program from the terminal: we must not send it again."""
    terminal = Terminal([TIDEMARK, "run", "-q", "--", sys.executable, "-c", LISTENER], tmp_path)
    terminal.read_until("ready")
    terminal.type("\x03")
    assert terminal.wait() == 5
    assert terminal.text.count("SIGINT") == 1


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0]


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
        return int(children.read().split()[0])


def test_stop_and_continue(tmp_path):
    """^Z stops both, so that a shell sees the job stop; fg continues both."""
    program = "print('rea' + 'dy', flush=True); print('got', input(), flush=True)"
    terminal = Terminal(["bash", "--norc", "--noprofile", "-i"], tmp_path)
    terminal.type(f'{TIDEMARK} run -q -- {sys.executable} -c "{program}"\n')
    terminal.read_until("ready")
    watched = child_of(terminal.pid)
    child = child_of(watched)
    terminal.type("\x1a")
    terminal.read_until("Stopped")
    assert state_of(child) == "T" and state_of(watched) == "T"
    terminal.type("fg\n")
    wait_until("both to go on", lambda: state_of(child) != "T" and state_of(watched) != "T")
    terminal.type("it\n")
    terminal.read_until("got it")
    terminal.type("exit $?\n")
    assert terminal.wait() == 0


def test_stopped_program_alone(tmp_path):
    """A program stopped by another hand does not stop us: we would never wake."""
    with subprocess.Popen([TIDEMARK, "run", "-q", "--", sys.executable, "-c", LISTENER],
                          stdout=subprocess.PIPE, text=True, cwd=tmp_path,
                          env=environment()) as watched:
        assert watched.stdout.readline() == "ready\n"
        child = child_of(watched.pid)
        os.kill(child, signal.SIGSTOP)
        wait_until("it to stop", lambda: state_of(child) == "T")
        assert state_of(watched.pid) in "SR"
        os.kill(child, signal.SIGCONT)
        os.kill(child, signal.SIGTERM)
        assert watched.wait(PATIENCE_S) == 5


# ---- terminals

def test_colours(tmp_path):
    shell(f"tidemark run -q -o a.tmk -- tinytrain --steps 1 {SMALL}", tmp_path)
    report = [TIDEMARK, "report", "a.tmk"]
    coloured = Terminal(report, tmp_path, PAGER="cat")
    assert coloured.wait() == 0 and "\033[1mPEAK\033[0m" in coloured.text
    for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        plain = Terminal(report, tmp_path, PAGER="cat", **variables)
        assert plain.wait() == 0 and "\033" not in plain.text and "PEAK" in plain.text
    assert "\033" not in shell("tidemark report a.tmk", tmp_path).stdout


# ---- children that outlive the program

def test_living_grandchild_is_left_alone(tmp_path):
    line = (f"tidemark run -o a.tmk -- sh -c 'tinytrain --steps 1000000 {SMALL} >/dev/null 2>&1 & "
            "echo $!; sleep 0.5'")
    done = shell(line, tmp_path)
    child = int(done.stdout)
    try:
        assert done.returncode == 0 and "next: tidemark peak a.tmk" in done.stderr
        assert "still running" in shell("tidemark report a.tmk", tmp_path).stdout
        check = json.loads(shell("tidemark check a.tmk --json", tmp_path).stdout)["traces"][0]
        assert check["ok"] and "still writing" in check["notes"][0]
        assert state_of(child) in "SR"
    finally:
        os.kill(child, signal.SIGKILL)
    wait_until("its end", lambda: not os.path.exists(f"/proc/{child}") or state_of(child) == "Z")
    after = json.loads(shell("tidemark check a.tmk --json", tmp_path).stdout)["traces"][0]
    assert after["ok"] and "the ring was merged" in after["notes"][0]
    assert after["events"] >= check["events"]


# ---- what it says can be copied

def test_commands_to_copy_are_quoted(tmp_path):
    done = shell(f"tidemark run -o \"bob's run.tmk\" -- tinytrain --steps 2 {SMALL}", tmp_path)
    following = re.search("^next: (tidemark peak .*)$", done.stderr, re.M)[1]
    assert " at the peak, " in shell(following, tmp_path).stdout
    lacking = shell("tidemark export \"bob's run.tmk\"", tmp_path).stderr
    to_copy = re.search("a format: (tidemark export .* --to) FORMAT;", lacking)[1]
    assert shell(f"{to_copy} csv -o tables", tmp_path).returncode == 0
    lacking = shell("tidemark report \"bob's run.tmk\" --rank 7", tmp_path).stderr
    to_copy = re.search('list them: (tidemark query .*"SELECT .*")', lacking)[1]
    assert "tinytrain" in shell(to_copy, tmp_path).stdout


# ---- filters

UNDER_A_FILTER = """
import ctypes, os, struct, sys
rule = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000), 8)  # all is allowed
program = struct.pack("HxxxxxxP", 1, ctypes.addressof(rule))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_filters_are_tried_once(tmp_path):
    """A child makes a recorder's system calls under an alarm: one child for all of a run."""
    if not shutil.which("strace"):
        pytest.skip("no strace here")
    done = subprocess.run(
        ["strace", "-f", "-o", "calls", "-e", "trace=alarm,setitimer,execve", sys.executable, "-c",
         UNDER_A_FILTER, TIDEMARK, "run", "-q", "--", "true"],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    calls = (tmp_path / "calls").read_text()
    if "execve" not in calls:
        pytest.skip(f"strace may not trace here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"alarm\(3\)|it_value={tv_sec=3,", calls)) == 1, calls
