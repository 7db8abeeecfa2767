# SPDX-License-Identifier: MIT
"""Python programs that run watched, to be asked things: started, found, ended, swept away."""
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TIDEMARK_BUILD", REPO / "build"))
TIDEMARK = str(BUILD / "tidemark")
DEBIAN = "/usr/bin/python3"
WAIT_S = 60
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

# A process is watched from its first event on: a mark is one.
HEAD = """\
import ctypes, os, signal, sys, threading, time
recorder = ctypes.CDLL(None)
recorder.tidemark_record_mark(b"start", None)
answer = 42
def ready():
    print("ready", os.getpid(), flush=True)
def until(path):
    while not os.path.exists(path):
        time.sleep(0.01)
def idle():
    ready()
    while True:
        time.sleep(0.01)
"""


def pythons():
    """Every CPython 3.9 or later that is here."""
    found = [python for home in {"/root", os.path.expanduser("~")}
             for python in glob.glob(f"{home}/.pyenv/versions/3.*/bin/python3")
             if int(python.split("/3.")[1].split(".")[0]) >= 9]
    return sorted({DEBIAN, sys.executable, *found})


# What a script needs to report blocks: alloc(address, bytes), on cuda:0.
BLOCKS = """\
class Site(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("function", ctypes.c_char_p),
                ("line", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]
site = Site(b"train.py", b"step", 7, 0)
recorder.tidemark_record_alloc.argtypes = [ctypes.c_uint, ctypes.c_void_p, ctypes.c_uint64,
                                           ctypes.c_void_p]
recorder.tidemark_record_free.argtypes = [ctypes.c_uint, ctypes.c_void_p]
def alloc(address, size):
    recorder.tidemark_record_alloc(256, address, size, ctypes.byref(site))
def free(address):
    recorder.tidemark_record_free(256, address)
"""


def environment(**more):
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("TIDEMARK_") and name not in ("LD_PRELOAD", "XDG_RUNTIME_DIR")}
    return {**kept, "PATH": f"{BUILD}:/usr/bin:/bin", "LC_ALL": "C.UTF-8", **more}


def tidemark(*arguments, **more):
    """Run the program; what came of it."""
    return subprocess.run([TIDEMARK, *map(str, arguments)], capture_output=True, text=True,
                          timeout=240, env=environment(), **more)


class Workshop:
    """A folder with targets in it; all of them end with it."""

    def __init__(self, folder):
        self.folder = folder
        self.run = folder / "a.tmk"
        self.rings = tempfile.mkdtemp(prefix="tidemark-test.",
                                      dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        self.runtime = tempfile.mkdtemp(prefix="tidemark-test.")
        self.started = []

    def command(self, *options):
        return [TIDEMARK, "run", "--quiet", "-o", str(self.run), *options, "--"]

    def start(self, command, **more):
        """Start a command whose first line of output is `ready PID`; (PID, the command)."""
        env = environment(**{"TIDEMARK_RING_DIR": self.rings, "XDG_RUNTIME_DIR": self.runtime,
                             **more.pop("env", {})})
        child = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True,
                                 cwd=self.folder, start_new_session=True, **more)
        self.started.append(child)
        word, pid = child.stdout.readline().split()
        assert word == "ready"
        return int(pid), child

    def script(self, text):
        path = self.folder / f"script{len(self.started)}.py"
        path.write_text(HEAD + text, encoding="utf-8")
        return str(path)

    def target(self, text="idle()\n", python=DEBIAN, options=(), **more):
        """PID of a watched Python program."""
        return self.start([*self.command(*options), python, self.script(text)], **more)[0]

    def close(self):
        for child in self.started:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()
            child.stdout.close()
        shutil.rmtree(self.rings, ignore_errors=True)
        shutil.rmtree(self.runtime, ignore_errors=True)


def evaluate(pid, code, *options):
    return tidemark("eval", pid, code, *options)


def value_of(pid, code, *options):
    """What an eval that must succeed prints."""
    done = evaluate(pid, code, *options)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def answer_of(pid, code, *options):
    return json.loads(evaluate(pid, code, "--json", *options).stdout)


def wait_until(is_so, what):
    """Wait until is_so() says something true; what that is."""
    deadline = time.monotonic() + WAIT_S
    while not (found := is_so()):
        assert time.monotonic() < deadline, what
        time.sleep(0.01)
    return found


def need_root():
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root and setpriv")
